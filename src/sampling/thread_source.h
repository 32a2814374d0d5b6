/*
 * The source of thread_list.h for a target: procfs and taskstats.
 */
#ifndef SS_SAMPLING_THREAD_SOURCE_H
#define SS_SAMPLING_THREAD_SOURCE_H

#include "capture/tasks.h"
#include "sampling/thread_list.h"
#include "target/taskstats.h"

struct ss_target_threads {
	const struct ss_target *target; /* borrowed */
	struct ss_thread_source source;
	struct ss_task_list scan;
	struct ss_taskstats stats;
	struct ss_buffer text;
};

/* Fills in source, whose data is threads. */
void ss_target_threads_init(struct ss_target_threads *threads,
			    const struct ss_target *target);
void ss_target_threads_deinit(struct ss_target_threads *threads);

#endif
