/*
 * The goroutines of a Go program: which memory describes them, and what it says. Reads the
 * memory of a capture, which is untrusted input; frames are found by unwind/.
 */
#ifndef SS_RUNTIME_GO_GOROUTINES_H
#define SS_RUNTIME_GO_GOROUTINES_H

#include "base/vector.h"
#include "model/capture.h"
#include "model/memory.h"
#include "runtime/go/program.h"

/* A goroutine that has not ended, as its struct g says. */
struct ss_go_goroutine {
	uint64_t id;
	enum ss_goroutine_status status;
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

#endif
