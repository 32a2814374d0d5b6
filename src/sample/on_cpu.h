/*
 * What was on the CPUs at each tick: the samples of the CPU clock (process/cpu_clock.h)
 * that belong to recorded processes, grouped into ticks.
 */
#ifndef SS_SAMPLE_ON_CPU_H
#define SS_SAMPLE_ON_CPU_H

#include "capture/stacks.h"
#include "process/cpu_clock.h"
#include "process/sample_reader.h"

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

#endif
