/*
 * Merges the tasks of asyncio of several snapshots of a process: how many of them did what, and in
 * how many of the snapshots.
 */
#ifndef SS_OUTPUT_MERGED_TASKS_H
#define SS_OUTPUT_MERGED_TASKS_H

#include "base/vector.h"
#include "output/format.h"
#include "output/presence.h"

/* Tasks of one event loop with the same coroutines that do the same; the lines do not count, as
   for threads. */
struct ss_merged_task {
	struct ss_presence presence;
	SS_VECTOR(const struct ss_async_task *) members; /* those of the last snapshot */
};

struct ss_merged_tasks {
	struct ss_merged_task *items; /* the largest first */
	size_t count;
	size_t changed; /* tasks: the most that ran while they were read, in a snapshot */
	size_t unread;	/* the most that could not be read */
	const char *problem; /* of the last snapshot that has one; or NULL */
};

/* NULL without memory. */
struct ss_merged_tasks *ss_merged_tasks_new(const struct ss_snapshots *snapshots);
void ss_merged_tasks_free(struct ss_merged_tasks *merged);

SS_DEFINE_CLEANUP(struct ss_merged_tasks, ss_merged_tasks, ss_merged_tasks_free)

#endif
