/*
 * What a capture is: everything that was copied from the target at one moment.
 * Plain and immutable; no live handle. Filled by capture/, read by unwind/,
 * diagnose/ and record/.
 */
#ifndef SS_MODEL_CAPTURE_H
#define SS_MODEL_CAPTURE_H

#include "arch/arch.h"
#include "base/intern.h"
#include "base/vector.h"
#include "model/facts.h"
#include "model/module.h"
#include "stacksnap.h"

/* comm is at most 15 bytes in Linux, kernel threads' up to 63. */
enum { SS_COMM_MAX = 64 };

/* Any mapped area of the target, in the order of addresses. */
struct ss_area {
	uint64_t start;
	uint64_t end;
	unsigned prot;
	bool shared;	  /* what is written is seen by others who map it */
	int32_t module;	  /* index into modules, or -1 */
	const char *name; /* "[stack]", "//anon", a path; in strings; never NULL */
};

/* A frame that was unwound while the target was stopped (SS_MODE_LIVE). */
struct ss_live_frame {
	uint64_t pc;
	bool signal_frame;
};

/* Bytes of a stack, in the capture's arena. */
struct ss_stack_copy {
	uint64_t address; /* of bytes[0] */
	size_t size;
	const uint8_t *bytes; /* NULL: nothing was copied */
	bool cut;	      /* the area goes on where the copy ends */
};

/* The lock that a thread waits for: memory around its futex, in the arena. */
struct ss_lock_copy {
	uint64_t address; /* of bytes[0] */
	size_t size;	  /* 0: it does not wait on a futex, or that could not be read */
	const uint8_t *bytes;
	/*
	 * Tells which threads stood still together. What the lock of a thread says of
	 * another one holds only if that one stood still while they were read: if it has
	 * the same moment, or the next one and this one is odd. 0: nobody stood still.
	 */
	unsigned moment;
};

/* 0: from sp on. 1: the interrupted stack below a handler on an alternate one. */
enum { SS_STACK_COPIES = 2 };

struct ss_capture_thread {
	pid_t tid;
	pid_t inner_tid; /* in its innermost pid namespace; 0: not known */
	char name[SS_COMM_MAX];
	char state;
	bool consistent;
	bool fragile; /* in a call that a stop would end: not stopped for more */
	bool worker;  /* the kernel's own */
	bool newborn; /* it has not run yet: no function has called where it stands */
	uint64_t stopped_ns;
	enum ss_end end;    /* ROOT: there is something to unwind; else why not */
	const char *reason; /* in strings, or NULL */
	const char *wchan;  /* likewise; as in struct ss_thread */
	const char *kernel_stack;
	struct ss_regs regs;
	struct ss_syscall syscall;
	uint64_t thread_pointer; /* 0: not known */
	struct ss_stack_copy stacks[SS_STACK_COPIES];
	struct ss_lock_copy lock;
	struct ss_live_frame *live; /* owned; NULL unless LIVE */
	size_t live_count;
	enum ss_end live_end;
};

struct ss_capture {
	struct ss_process process; /* strings in strings */
	struct ss_intern *strings;
	const char *root; /* its root directory, where paths begin with that; or NULL */
	SS_VECTOR(struct ss_capture_thread) threads;
	SS_VECTOR(struct ss_area) areas;
	SS_VECTOR(struct ss_module_impl *) modules; /* one reference each */
	struct ss_facts *facts; /* one reference; NULL: none were collected */
	uint8_t *arena;		/* mmap of all stack copies */
	size_t arena_size;
	SS_VECTOR(struct ss_capture *)
	others;				 /* of other processes, to which waits
					    lead; owned */
	struct ss_capture *complement;	 /* owned; of ss_capture_complete(), or NULL */
	struct ss_module_impl *perf_map; /* names of JIT code: a file to read, no ELF;
					    one reference, or NULL */
};

/* An empty capture, or NULL without memory. Freed by ss_capture_free(). */
struct ss_capture *ss_capture_new(void);

/* The path of size bytes as a process below capture->root sees it, in strings. The kernel
   tells paths from the root of the mount namespace on. NULL without memory. */
const char *ss_capture_path(struct ss_capture *capture, const char *path, size_t size);

/* The area that holds address, or NULL. */
const struct ss_area *ss_capture_find_area(const struct ss_capture *capture,
					   uint64_t address);

SS_DEFINE_CLEANUP(struct ss_capture, ss_capture, ss_capture_free)

#endif
