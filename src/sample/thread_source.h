/*
 * The source of thread_list.h for a target: procfs, and the CPU-time clock of the process.
 */
#ifndef SS_SAMPLE_THREAD_SOURCE_H
#define SS_SAMPLE_THREAD_SOURCE_H

#include <time.h>

#include "capture/tasks.h"
#include "sample/thread_list.h"

struct ss_target_threads {
	const struct ss_target *target; /* borrowed */
	struct ss_thread_source source;
	struct ss_task_list scan;
	clockid_t clock; /* of its CPU time */
	bool has_clock;
	struct ss_buffer text;
};

/* Fills in source, whose data is threads. */
void ss_target_threads_init(struct ss_target_threads *threads,
			    const struct ss_target *target);
void ss_target_threads_deinit(struct ss_target_threads *threads);

#endif
