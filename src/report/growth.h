/*
 * Who makes the memory of a process grow: stacks that touch new pages first, as a trace of page
 * faults reports them, one of so many bytes.
 */
#ifndef SS_REPORT_GROWTH_H
#define SS_REPORT_GROWTH_H

#include "base/vector.h"
#include "stacksnap.h"

struct ss_growth_sample {
	uint64_t page; /* its number */
	uint32_t stack;
	uint32_t order;
	bool held; /* it is still there */
};

/* A stack with its samples. */
struct ss_growth_site {
	uint32_t stack;
	uint64_t samples;
	uint64_t held; /* of these */
};

/* Zeroed, it is empty. */
struct ss_growth {
	uint64_t sample_bytes; /* that each sample stands for */
	bool held_only; /* leave out what is not there any more, and sort by the rest */
	unsigned rows;
	pid_t pid;
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t samples;
	uint64_t held;
	uint64_t unsampled_bytes; /* touched since the last sample of a thread on a CPU */
	SS_VECTOR(struct ss_growth_sample) items;
	SS_VECTOR(struct ss_growth_site)
	sites;	     /* after growth_finish(), largest first */
	bool failed; /* no memory for the result: nothing, or not all, was written */
};

void ss_growth_deinit(struct ss_growth *growth);

#endif
