/*
 * Scheduler counters of each thread of a process, read without affecting it. Comparing
 * two readings shows which threads ran in between.
 */
#ifndef SS_MODEL_ACTIVITY_H
#define SS_MODEL_ACTIVITY_H

#include "base/vector.h"
#include "stacksnap.h"

struct ss_thread_activity {
	pid_t tid;
	char state;
	bool counted;	 /* the counters could be read */
	uint64_t run_ns; /* on a CPU */
	uint64_t ready_ns;
	uint64_t runs;	    /* number of times it was scheduled */
	uint64_t voluntary; /* context switches: voluntary, */
	uint64_t forced;    /* and involuntary */
};

struct ss_activity {
	uint64_t time_ns;			      /* CLOCK_MONOTONIC */
	SS_VECTOR(struct ss_thread_activity) threads; /* ascending by tid */
};

/* The counters of a thread, or NULL. activity may be NULL. */
const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid);

#endif
