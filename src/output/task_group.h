/*
 * Groups of asyncio's tasks: those that wait for the same in the same places.
 */
#ifndef SS_OUTPUT_TASK_GROUP_H
#define SS_OUTPUT_TASK_GROUP_H

#include "base/cleanup.h"
#include "stacksnap.h"

/* One that waits for other tasks is on its own: what it waits for tells it apart. */
struct ss_task_group {
	const struct ss_async_task *const *members; /* ascending by name; at least one */
	size_t count;
};

struct ss_task_grouping {
	struct ss_task_group *groups; /* the largest first, then by their first member */
	size_t count;
	const struct ss_async_task **members; /* owned; the groups point into it */
};

/* merge: or each task is a group. NULL without memory. */
struct ss_task_grouping *ss_task_grouping_new(const struct ss_snapshot *snapshot,
					      bool merge);
void ss_task_grouping_free(struct ss_task_grouping *grouping);

SS_DEFINE_CLEANUP(struct ss_task_grouping, ss_task_grouping, ss_task_grouping_free)

#endif
