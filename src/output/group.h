/*
 * Groups the threads of a snapshot that have equal stacks.
 */
#ifndef SS_OUTPUT_GROUP_H
#define SS_OUTPUT_GROUP_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "stacksnap.h"

struct ss_group {
	const size_t *members; /* indexes of threads, ascending; owned by the grouping */
	size_t count;	       /* at least 1 */
	bool has_running;      /* contains a thread in state R */
	bool has_crashed;      /* contains the thread that a signal ended */
	bool has_main;	       /* contains the main thread: its tid is the pid */
	bool is_idle; /* all probably wait for work, by the kind of their waits */
};

struct ss_grouping {
	struct ss_group *groups;
	size_t count;
	size_t *members; /* owned; the groups point into it */
};

/*
 * Groups threads whose stack, end and reason are equal. Order: the thread that a signal
 * ended, in a snapshot of a core file; threads that are not idle,
 * then idle threads, then pools of idle threads; within each the group of the main thread,
 * then the smallest groups. With merge false every thread is a group of its own, in the
 * order of the snapshot. Returns NULL without memory.
 */
struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot, bool merge);
void ss_grouping_free(struct ss_grouping *grouping);

SS_DEFINE_CLEANUP(struct ss_grouping, ss_grouping, ss_grouping_free)

#endif
