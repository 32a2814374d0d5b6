/*
 * What each thread of a process has done so far, by the counters of the scheduler. Read
 * without touching the process; two of them tell what moved in between.
 */
#ifndef SS_MODEL_ACTIVITY_H
#define SS_MODEL_ACTIVITY_H

#include "base/vector.h"
#include "stacksnap.h"

struct ss_thread_activity {
	pid_t tid;
	char state;
	bool counted;	 /* the scheduler's counters could be read */
	uint64_t run_ns; /* on a CPU */
	uint64_t ready_ns;
	uint64_t runs;	    /* times it was put on a CPU */
	uint64_t voluntary; /* context switches: it waited for something, */
	uint64_t forced;    /* or was replaced by another thread */
};

struct ss_activity {
	uint64_t time_ns;			      /* CLOCK_MONOTONIC */
	SS_VECTOR(struct ss_thread_activity) threads; /* ascending by tid */
};

/* What is known of a thread, or NULL; activity may be NULL. Threads are in the order of
   their ids. */
const struct ss_thread_activity *ss_activity_find(const struct ss_activity *activity,
						  pid_t tid);

#endif
