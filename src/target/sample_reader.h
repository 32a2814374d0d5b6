/*
 * Memory of the moment of a sample of the CPU clock (target/cpu_clock.h): the kernel executes a
 * program (target/gather_program.h) before it takes the sample of a thread that is known here, and
 * that program copies what a gather plan says. So a running thread is not stopped for it, and it
 * does not matter what the thread does afterwards.
 *
 * It needs CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN), and Linux 5.5. It takes half
 * a mebibyte for each CPU, or a quarter of one for each of many. For one thread at a time.
 */
#ifndef SS_TARGET_SAMPLE_READER_H
#define SS_TARGET_SAMPLE_READER_H

#include "target/cpu_clock.h"
#include "target/gather_program.h"

struct ss_sample_plan;

/* Zeroed, it is closed. */
struct ss_sample_reader {
	const struct ss_cpu_clock *clock; /* borrowed; set before the first plan */
	bool tried;			  /* to open it */
	bool is_open;
	int errnum; /* why it is not open, or a plan was not taken */
	struct ss_gather_maps maps;
	const uint8_t *records;
	size_t cpu_count;
	int dispatcher;
	SS_VECTOR(struct ss_sample_plan *) plans; /* NULL: the place is free */
};

/* For a process: what a plan says of the threads of its roots is copied with each of their samples, in
   place of what *handle was given for before; of a plan without roots, of these threads. handle: 0
   at first. NULL: nothing is any more. Opens the reader at the first time. If it cannot be done, *handle
   is 0: nothing is copied. Not to be called in a freeze. */
void ss_sample_reader_set(struct ss_sample_reader *reader, uint32_t *handle,
			  const struct ss_gather_plan *plan);

/* The copies of a sample that was just read, as SS_GATHER_RECORD_SIZE bytes or less: blocks. Returns
   their size. 0: there are none, or not all that the plan wanted. */
size_t ss_sample_reader_find(const struct ss_sample_reader *reader,
			     const struct ss_clock_sample *sample, void *ret);

void ss_sample_reader_close(struct ss_sample_reader *reader);

#endif
