/*
 * The scheduler's counters of the threads of a process.
 */
#ifndef SS_CAPTURE_ACTIVITY_H
#define SS_CAPTURE_ACTIVITY_H

#include "stacksnap.h"

/* The scheduler's counters of each thread of a process. */
struct ss_activity;

/*
 * Reads the counters of all threads. Does not touch the process.
 * Errors: NO_PROCESS, NO_MEMORY, SYSTEM.
 */
struct ss_error *ss_activity_take(const struct ss_target *target,
				  struct ss_activity **ret);

void ss_activity_free(struct ss_activity *activity);

#endif
