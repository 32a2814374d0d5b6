/*
 * Memory of the moment of a sample of the CPU clock (process/cpu_clock.h): the kernel executes a
 * program (process/gather_program.h) before it takes the sample of a thread that is known here, and
 * that program copies what a gather plan says. So a running thread is not stopped for it, and it
 * does not matter what the thread does afterwards.
 *
 * It needs CAP_BPF and CAP_PERFMON (or CAP_SYS_ADMIN), and Linux 5.11 (for registers 5.15, with BTF). It takes half
 * a mebibyte for each CPU, or a quarter of one for each of many. For one thread at a time.
 */
#ifndef SS_PROCESS_SAMPLE_READER_H
#define SS_PROCESS_SAMPLE_READER_H

#include "process/cpu_clock.h"
#include "process/gather_program.h"
#include "data/gather_plan.h"

enum { SS_SAMPLE_PROGRAMS = 16 }; /* in the life of a reader */

struct ss_sample_plan;
struct ss_sample_program;

/* Zeroed, it is closed. */
struct ss_sample_reader {
	const struct ss_cpu_clock *clock; /* borrowed; set before the first plan */
	bool tried;			  /* to open it */
	bool is_open;
	int errnum; /* why it is not open */
	struct ss_gather_maps maps;
	const uint8_t *records;
	size_t cpu_count;
	SS_VECTOR(struct ss_sample_program) programs;
	SS_VECTOR(struct ss_sample_plan *) plans; /* NULL: the place is free */
};

/* Copies what a plan says with each sample of the threads of a process: of those that have roots in the plan
   what begins at these, of all what begins at registers. Replaces the plan that *handle refers to (0:
   none); NULL removes it. The first call opens the reader. *handle is 0 if nothing is copied. Not
   to be called in a freeze. */
void ss_sample_reader_set(struct ss_sample_reader *reader, uint32_t *handle, pid_t pid,
			  const struct ss_gather_plan *plan);

/* The copies of a sample that was just read: blocks, of SS_GATHER_RECORD_SIZE bytes at most; none of a thread of
   which the plan says nothing. False: they are not known, or are not all. */
bool ss_sample_reader_find(const struct ss_sample_reader *reader,
			   const struct ss_clock_sample *sample, void *ret,
			   size_t *ret_size);

void ss_sample_reader_close(struct ss_sample_reader *reader);

#endif
