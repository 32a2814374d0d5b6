/*
 * A capture: everything that was copied from the target at one time. Plain data without a
 * live handle. Filled by capture/; read by unwind/, diagnose/ and sample/. Immutable
 * once returned, except that ss_capture_complete() and ss_capture_add_related() add to
 * it.
 */
#ifndef SS_DATA_CAPTURE_H
#define SS_DATA_CAPTURE_H

#include <limits.h>
#include <stdatomic.h>

#include "arch/arch.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/facts.h"
#include "data/memory.h"
#include "data/module.h"
#include "data/pipeline.h"
#include "stacksnap.h"

/* A line of /proc/PID/maps. */
struct ss_mapped_range {
	uint64_t start;
	uint64_t end;
	const char *name; /* path, "[vdso]", ...; "": anonymous memory */
};

/* The mapping of the process that contains address; name is valid until the capture is freed.
   False: there is none. */
bool ss_capture_find_mapping(const struct ss_capture *capture, uint64_t address,
			     struct ss_mapped_range *ret);

/* comm is at most 15 bytes in Linux, kernel threads' up to 63. */
enum { SS_COMM_MAX = 64 };

/* A mapping of the target; sorted by address. */
struct ss_area {
	uint64_t start;
	uint64_t end;
	unsigned prot;
	bool shared;	  /* MAP_SHARED: writes are visible to other processes */
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
	/* One bit for each page that the copy is in; set: the page was not in memory, its
	   bytes are 0. In the arena. NULL: all were. */
	const uint8_t *absent;
	bool truncated; /* the area continues beyond the copy */
};

/* The lock for which a thread waits: memory around its futex, in the arena. */
struct ss_lock_copy {
	uint64_t address; /* of bytes[0] */
	size_t size; /* 0: it does not wait on a futex, or the memory was unreadable */
	const uint8_t *bytes;
	/* Identifies threads that were stopped together. The owner in a lock word is
	   reliable only if that thread was stopped while the word was read: if it has the
	   same round, or the next one and this one is odd. 0: no thread was stopped. */
	unsigned freeze_round;
};

/* The copies of the stacks of one thread. */
enum ss_stack_part {
	SS_STACK_SP,	      /* from sp on */
	SS_STACK_INTERRUPTED, /* below a handler on an alternate one */
	SS_STACK_SP_REST,     /* what follows SP, of a deep stack */
	SS_STACK_INTERRUPTED_REST,
	SS_STACK_OTHER, /* another stack to which it may lead */
	SS_STACK_FOUND, /* memory to which unwinding led; and one more */
	SS_STACK_COPIES = SS_STACK_FOUND + 2,
};

/* Its stack is of another moment than all that was gathered. */
#define SS_TURN_OTHER UINT_MAX

/* Copies of the stacks of one thread, which captures of a series share while they are equal. */
struct ss_stack_block {
	atomic_uint references;
	_Alignas(16) uint8_t bytes[];
};

struct ss_stack_block *ss_stack_block_new(size_t size); /* NULL: no memory */
struct ss_stack_block *ss_stack_block_ref(struct ss_stack_block *block);
void ss_stack_block_unref(struct ss_stack_block *block); /* accepts NULL */

struct ss_capture_thread {
	pid_t tid;
	pid_t inner_tid; /* in its innermost pid namespace; 0: not known */
	char name[SS_COMM_MAX];
	char state;
	bool consistent;
	bool fragile; /* in a call that a stop would end early: must not be stopped */
	bool worker;  /* a kernel worker */
	/* a new thread that has not run yet: no function has called its pc */
	bool not_started;
	uint64_t stopped_ns;
	enum ss_end
		end; /* ROOT: there is a stack to unwind; otherwise the reason why not */
	const char *reason; /* in strings, or NULL */
	const char *wchan;  /* in strings, or NULL; as in struct ss_task */
	const char *kernel_stack;
	struct ss_regs regs;
	struct ss_syscall syscall;
	uint64_t thread_pointer; /* 0: not known */
	/* How often it had been scheduled when its stack was copied without stopping it; 0:
	   not known. */
	uint64_t run_count;
	bool not_run; /* since the previous capture of a series */
	struct ss_stack_copy stacks[SS_STACK_COPIES];
	struct ss_stack_block
		*block; /* has the stacks; one reference. NULL: the arena has */
	struct ss_lock_copy lock;
	/* What was gathered with its stack: index in turns + 1; 0: no turn; SS_TURN_OTHER */
	unsigned turn;
	struct ss_live_frame *live; /* owned; NULL unless LIVE */
	size_t live_count;
	enum ss_end live_end;
};

/* Memory that a gather plan copied. Blocks are sorted by address and do not overlap. */
struct ss_memory_block {
	uint64_t address;
	size_t size;
	const uint8_t *bytes;
};

struct ss_gathered {
	SS_VECTOR(struct ss_memory_block) blocks;
	uint8_t *bytes; /* of all blocks; owned */
	/* Addresses of nodes that the plan checks, and that had changed; ascending. */
	SS_VECTOR(uint64_t) changed;
	uint64_t monotonic_ns; /* when it was copied; 0: not known */
	bool truncated;	       /* a limit of the plan was reached */
	bool late;	       /* copied after the capture, without a stop */
};

/* Whether the plan found that a node at that address had changed since it was copied. */
bool ss_gathered_changed(const struct ss_gathered *gathered, uint64_t address);

/* Sorts the blocks, which are of one moment, and removes overlaps. */
void ss_gathered_sort(struct ss_gathered *gathered);

/* Sets has_other_modules. Takes over the saved stacks of the previous capture of a series if both
   have the same modules: as those of this one if no thread of the process has run since,
   otherwise as earlier ones. */
void ss_capture_keep_stacks(struct ss_capture *capture,
			    const struct ss_capture *previous);

/* Drops all turns. */
void ss_capture_clear_turns(struct ss_capture *capture);

/* Frees what was copied. */
void ss_gathered_deinit(struct ss_gathered *gathered);

struct ss_capture {
	const struct ss_arch *arch;
	struct ss_process process; /* strings in strings */
	struct ss_intern *strings;
	const char *root; /* its root directory if paths begin with it, or NULL */
	SS_VECTOR(struct ss_capture_thread) threads;
	SS_VECTOR(struct ss_area) areas;
	SS_VECTOR(struct ss_module_impl *) modules; /* one reference each */
	/* ss_module_identify() was called for every module that has bytes: a process may
	   have 60,000, too many to look at in each of many captures. */
	bool modules_identified;
	struct ss_facts *facts; /* one reference; NULL: none were collected */
	uint8_t *arena;		/* mmap of all stack copies */
	size_t arena_size;
	uint8_t *locks; /* of a series: of all threads; owned */
	/* Since the previous capture of a series no thread of the process has run, not even one that is
	   left out of threads. */
	bool not_run;
	bool not_swapped; /* no private page of the process is in swap */
	size_t own_bytes; /* of locks, and of blocks that the previous capture does not have */
	struct ss_gathered gathered;
	uint64_t plan_id; /* see ss_gather_plan_id(); 0: of none, or not in the freeze */
	SS_VECTOR(struct ss_gathered) turns; /* of a recording: for some threads each */
	/* All memory of the same moment, of a core file; or NULL. Owned, freed by free_whole. */
	struct ss_memory *whole;
	void (*free_whole)(struct ss_memory *whole);
	const char *whole_problem; /* why a part of it may be missing; NULL: none is */
	SS_VECTOR(struct ss_capture *)
	others; /* related processes; owned */
	/* By ss_capture_add_stacks(); untrusted; one reference, or NULL. Captures of a series share
	   them if no thread of the process has run in between. */
	struct ss_stack_block *saved;
	size_t saved_size;
	bool saved_shared;
	bool has_other_modules; /* than the previous capture of a series */
	bool has_opened_files;	/* of modules, some of which it may share with that one */
	/* Those of the previous capture of a series, for threads that have not run since; one
	   reference, or NULL. As untrusted. */
	struct ss_stack_block *earlier;
	size_t earlier_size;
	struct ss_capture *complement; /* from ss_capture_complete(), or NULL; owned */
	bool completed_in_place; /* the last one replaced no stack and opened no file */
	struct ss_module_impl *
		perf_map; /* a text file with names of JIT code; one reference, or NULL */
};

/* An empty capture, or NULL if memory is exhausted. Freed by ss_capture_free(). */
struct ss_capture *ss_capture_new(void);

/* A path of size bytes as seen below capture->root, in strings. The kernel reports paths
   from the root of the mount namespace. NULL if memory is exhausted. */
const char *ss_capture_path(struct ss_capture *capture, const char *path, size_t size);

/* The reason why a stack ends at a page that was absent. */
#define SS_ABSENT_REASON                                                                 \
	"a page of its stack is not in memory: reading it could wait for a file "        \
	"system or a userfaultfd"

/* The reason why a stack ends where its copy ends. */
#define SS_TOTAL_REASON "the total size limit was reached; --max-total=MIB raises it"

/* The number of bytes from an offset of a copy to the next page that was absent, or to its
   end. */
size_t ss_stack_copy_present(const struct ss_stack_copy *copy, size_t at);

/* Whether address is in a page of the stacks of a thread that was not in memory. */
bool ss_capture_thread_lacks(const struct ss_capture_thread *thread, uint64_t address);

/* Adds what the capture has of each thread to facts. False without memory. */
bool ss_capture_add_thread_facts(const struct ss_capture *capture,
				 struct ss_facts *facts);

/* The thread with that id, or NULL: threads are sorted by their ids. */
struct ss_capture_thread *ss_capture_find_thread(const struct ss_capture *capture,
						 pid_t tid);

/* The area that contains address, or NULL. */
const struct ss_area *ss_capture_find_area(const struct ss_capture *capture,
					   uint64_t address);

/* The path of anonymous memory that is shared. */
#define SS_SHARED_MEMORY "/dev/zero"

/* The name of an area in a frame. Code without a file was generated by the process
   itself: "[jit]". */
const char *ss_area_label(const struct ss_area *area);

SS_DEFINE_CLEANUP(struct ss_capture, ss_capture, ss_capture_free)

/*
 * The memory of a capture: the stacks that were copied, the bytes around futexes, and
 * what a gather plan asked for. It does not include mapped files.
 */

struct ss_capture_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	const struct ss_capture *capture;
	const struct ss_capture_thread *thread; /* NULL: stacks of all threads */
};

/*
 * Memory of a capture as seen by one thread: its own stacks and lock, and gathered
 * blocks. With thread NULL, the stacks and locks of all threads, which a read searches
 * one by one, and gathered blocks. Both must outlive the memory.
 */
void ss_capture_memory_init(struct ss_capture_memory *memory,
			    const struct ss_capture *capture,
			    const struct ss_capture_thread *thread);

/* Whether a thread's stack or lock, or what was gathered, was copied from a range. */
bool ss_capture_has_copy(const struct ss_capture *capture, uint64_t start, size_t size);

#endif
