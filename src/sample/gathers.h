/*
 * Copies what runtimes of a process need with the stacks of a tick: executes a gather plan for
 * the threads that stand still, as often as threads are copied in a tick. The copies of one turn
 * are of one moment, and only count for its threads (struct ss_capture_thread.turn).
 */
#ifndef SS_SAMPLE_GATHERS_H
#define SS_SAMPLE_GATHERS_H

#include "capture/stacks.h"
#include "data/gather.h"
#include "process/perf.h"
#include "process/sample_reader.h"
#include "process/process_memory.h"

/*
 * What was on the CPUs at each tick: the samples of the CPU clock (process/perf.h)
 * that belong to recorded processes, grouped into ticks.
 */

struct ss_on_cpu_sample {
	struct ss_clock_sample clock;
	struct ss_stack_copy stack; /* in the arena */
	bool copied;	       /* what runtimes need was, see ss_sample_reader_find(): */
	const uint8_t *copies; /* in the arena */
	size_t copies_size;
};

struct ss_on_cpu {
	SS_VECTOR(struct ss_on_cpu_sample) samples; /* ascending by time */
};

/* Takes all samples of processes that wanted() accepts; their stacks, and what reader has copied with
   them, go to the arena, which is emptied. False: no memory. */
bool ss_on_cpu_collect(struct ss_on_cpu *on_cpu, struct ss_cpu_clock *clock,
		       const struct ss_sample_reader *reader, struct ss_arena *arena,
		       bool (*wanted)(void *data, pid_t pid), void *data);
void ss_on_cpu_deinit(struct ss_on_cpu *on_cpu);

/* The end of the tick that begins with the sample at an index: samples from before a time,
   each CPU and each thread at most once. */
size_t ss_on_cpu_tick_end(const struct ss_on_cpu *on_cpu, size_t begin,
			  uint64_t until_ns);
/* The beginning of the tick that ends before an index, likewise; first: the end of the tick
   before. */
size_t ss_on_cpu_tick_begin(const struct ss_on_cpu *on_cpu, size_t first, size_t end);

/* The index of the first sample that is not before a time. */
size_t ss_on_cpu_find(const struct ss_on_cpu *on_cpu, uint64_t time_ns);

enum {
	SS_GATHER_TURNS = 128,	     /* in a tick */
	SS_GATHER_TURNS_TAKEN = 112, /* of these with samples: the rest is for stops */
	/* Limits of a plan, for all turns of a tick: so much memory is taken all the time. */
	SS_GATHER_NODES = 1 << 15,
	SS_GATHER_BYTES = 8 << 20,
	/* Of each turn */
	SS_GATHER_TURN_NODES = 1 << 13,
	SS_GATHER_TURN_BYTES = 2 << 20,
	SS_GATHER_TURN_READS =
		2048, /* the next frame is one; most are in pages that were read */
};

struct ss_gathers {
	struct ss_gather *gather; /* NULL: there is no plan */
	size_t first[SS_GATHER_TURNS +
		     1];	     /* the nodes of a turn: from first[i] to [i + 1] */
	size_t used;		     /* turns of this tick */
	struct ss_page_cache *pages; /* NULL: the plan reads memory again */
};

/* Takes a plan, untrusted input, in place of the one before. NULL: none. Errors: INVALID,
   NO_MEMORY; then there is none. */
struct ss_error *ss_gathers_set(struct ss_gathers *gathers,
				const struct ss_gather_plan *plan);
void ss_gathers_deinit(struct ss_gathers *gathers);

/* A tick begins: drops what was copied. */
void ss_gathers_begin(struct ss_gathers *gathers);

/* Takes the next turn from what was copied with a sample. Returns it, for struct
   ss_capture_thread.turn; 0: there is no plan, or there were too many turns. */
unsigned ss_gathers_take(struct ss_gathers *gathers,
			 const struct ss_on_cpu_sample *sample);

/* Takes the next turn, for the wanted threads, which stand still; for the freeze. */
void ss_gathers_run(struct ss_gathers *gathers, const struct ss_process_memory *memory,
		    struct ss_task_list *tasks, ss_task_predicate *wanted);

#endif
