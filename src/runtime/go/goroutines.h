/*
 * The goroutines of a Go program: which memory describes them, and what it says. Reads the
 * memory of a capture, which is untrusted input; frames are found by unwind/.
 */
#ifndef SS_RUNTIME_GO_GOROUTINES_H
#define SS_RUNTIME_GO_GOROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vector.h"
#include "elf/image.h"
#include "data/capture.h"
#include "data/memory.h"
#include "data/gather.h"
#include "data/pipeline.h"

/*
 * Where the runtime of Go keeps what describes a goroutine, by version. The offsets are
 * those of struct g, gobuf and m in Go's src/runtime/runtime2.go, on 64-bit processors.
 *
 * To add a version: compare these structs, and the array waitReasonStrings, with those of
 * the version before; add a row, and a reason list if it differs, to goroutines.c, and the
 * version to tests/e2e/test_goroutines.py.
 */

/* The same in all versions. */
enum {
	SS_GO_STACK_LO = 0,
	SS_GO_STACK_HI = 8,
	SS_GO_M = 48,  /* the thread (struct m) on which it is, or 0 */
	SS_GO_SP = 56, /* of gobuf: where it continues */
	SS_GO_PC = 64,
	SS_GO_SELF = 72, /* its own address */
};

struct ss_go_layout {
	unsigned first; /* Go 1.first to 1.last */
	unsigned last;
	uint32_t bp;
	uint32_t syscall_sp; /* where it entered a system call; followed by the pc */
	uint32_t status;
	uint32_t id;
	uint32_t since; /* CLOCK_MONOTONIC, or 0: when the garbage collector ran before it
			found that the goroutine waits */
	uint32_t reason;    /* one byte: index of reasons */
	uint32_t thread_id; /* of struct m */
	/* One byte: grows each time that it stops running; then, aligned, a time that changes
	   at least each eighth time. 0: not known */
	uint32_t stops;
	const char *const *reasons; /* words of the runtime; "" for 0 */
	size_t reason_count;
};

/* The layout of Go 1.minor. NULL: not known. */
const struct ss_go_layout *ss_go_layout_find(unsigned minor);

/*
 * Finds the list of goroutines of a Go program and the layout of its runtime, in the file
 * of the program, stripped or not. The file is untrusted input.
 */

enum { SS_GO_HEAP_MAX = 8 };

struct ss_go_program {
	bool is_go;
	char version[32];		   /* "go1.24.4"; "": not known */
	unsigned minor;			   /* 24 */
	const struct ss_go_layout *layout; /* NULL: see problem */
	uint64_t list; /* ELF virtual address of the slice runtime.allgs */
	/* ELF virtual addresses of variables of which one may be mheap_.arenas */
	uint64_t heap[SS_GO_HEAP_MAX];
	size_t heap_count;
	const char *problem; /* why goroutines cannot be found, or NULL */
};

/* The Go program that an image is, kept by the image. NULL: it is none. */
const struct ss_go_program *ss_go_program_find(struct ss_image *image);

/* A goroutine that has not ended, as its struct g says. */
struct ss_go_goroutine {
	uint64_t address; /* of its struct g */
	uint64_t id;
	enum ss_task_status status;
	const char *wait_reason; /* WAITING: in Go's words; NULL: not known */
	uint64_t since;		 /* it waits about since then, CLOCK_MONOTONIC; or 0 */
	uint64_t stack_low;
	uint64_t stack_high;
	uint64_t pc; /* where it continues; 0: it is on a thread, or not known */
	uint64_t sp;
	uint64_t bp;
	pid_t thread;	   /* in its pid namespace; 0: none, or not known */
	uint64_t run_mark; /* differs after it has run; 0: not known */
	bool changed;	   /* while it was read */
	/* It may wait so on purpose, until the program is ended: the main goroutine, or one that
	   waits for nothing. */
	bool on_purpose;
	bool idle; /* as in struct ss_task */
	/* NIL_CHANNEL as its wait reason says; OBJECT: see ss_go_find_unwakeable() */
	enum ss_endless endless;
};

struct ss_go_goroutines {
	SS_VECTOR(struct ss_go_goroutine) items; /* ascending by id */
	size_t unread;	     /* that could not be read, or not completely */
	const char *problem; /* why there are none, or NULL */
};

/* Runtimes of Go in one process for which a plan has steps. */
enum { SS_GO_RUNTIMES_MAX = 4 };

/* Adds to a plan, empty or for less than SS_GO_RUNTIMES_MAX others, the steps that copy what
   describes the goroutines of the program, and their stacks. list: the address of its list in the
   process. */
void ss_go_goroutines_plan(const struct ss_go_program *program, uint64_t list,
			   struct ss_gather_plan *plan);

/* Reads what a plan has copied. False without memory. */
bool ss_go_goroutines_read(const struct ss_go_program *program, uint64_t list,
			   const struct ss_memory *memory,
			   const struct ss_gathered *gathered,
			   struct ss_go_goroutines *ret);
void ss_go_goroutines_deinit(struct ss_go_goroutines *goroutines);

/* All memory of a process with a runtime of Go. */
struct ss_go_process {
	const struct ss_capture *capture;
	const struct ss_go_program *program;
	uint64_t bias; /* from its ELF addresses to those in the process */
	/* Memory as it is now, and whether a thread has run since the capture; or NULL: */
	ss_memory_read_ranges_function *read_ranges;
	ss_thread_check_function *check;
	void *read_data;
	const struct ss_memory *whole; /* all of it is of one moment; or NULL */
};

/* Sets endless to OBJECT for the goroutines that can never continue, since only such goroutines refer to
   what they wait for. Sets none if that is not certain. */
void ss_go_find_unwakeable(const struct ss_go_process *process,
			   struct ss_go_goroutines *goroutines);

#endif
