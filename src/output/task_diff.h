/*
 * Compares the tasks of asyncio of two snapshots of a process.
 */
#ifndef SS_OUTPUT_TASK_DIFF_H
#define SS_OUTPUT_TASK_DIFF_H

#include "output/diff.h"

struct ss_task_change {
	enum ss_change change;
	const struct ss_async_task *before; /* NULL: new */
	const struct ss_async_task *after;  /* NULL: gone */
	/* The outermost frames that are equal in both; of UNCHANGED all */
	size_t common;
};

struct ss_task_diff {
	struct ss_task_change *items; /* unchanged ones first; then by name */
	size_t count;
	size_t counts[SS_CHANGE_COUNT];
	/* Why tasks are not compared: those of a snapshot are not known; or NULL */
	const char *problem;
};

/*
 * Tasks are matched by name and address. Another task with the name of one that has ended may have
 * got its address: it cannot be told from that one. A task that runs in both snapshots is unchanged
 * if its thread is: threads has the changes of these. NULL without memory.
 */
struct ss_task_diff *ss_task_diff_new(const struct ss_diff_input *input,
				      const struct ss_diff *threads);
void ss_task_diff_free(struct ss_task_diff *diff);

SS_DEFINE_CLEANUP(struct ss_task_diff, ss_task_diff, ss_task_diff_free)

#endif
