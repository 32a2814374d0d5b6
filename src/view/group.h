/*
 * Threads with equal stacks, brought together. A group holds thread indexes in the
 * order of the snapshot.
 */
#ifndef SS_VIEW_GROUP_H
#define SS_VIEW_GROUP_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "stacksnap.h"

struct ss_group {
	const size_t *members; /* thread indexes, ascending; of the grouping */
	size_t count;	       /* at least 1 */
	bool has_running;      /* a thread in state R is in it */
	bool has_main;	       /* the thread whose id is the pid is in it */
	bool is_idle;	       /* all wait for work, as far as the kind of wait tells */
};

struct ss_grouping {
	struct ss_group *groups;
	size_t count;
	size_t *members; /* owned; the groups point into it */
};

/*
 * Groups the threads of a snapshot: equal stack, end and reason. The odd ones come first
 * and what waits for work last: what is not idle, then idle threads, then pools of idle
 * threads; in each the group of the main thread, then the smallest. With merge false
 * every thread is a group of its own, in the order of the snapshot. NULL without memory.
 */
struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot, bool merge);
void ss_grouping_free(struct ss_grouping *grouping);

SS_DEFINE_CLEANUP(struct ss_grouping, ss_grouping, ss_grouping_free)

#endif
