/*
 * Groups the goroutines of a snapshot that have equal stacks and do the same.
 */
#ifndef SS_OUTPUT_GOROUTINE_GROUP_H
#define SS_OUTPUT_GOROUTINE_GROUP_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "stacksnap.h"

/* The first one stands for all as to status, wait_reason, stack and on_thread. */
struct ss_goroutine_group {
	const struct ss_goroutine *const *members; /* ascending by id */
	size_t count;
};

struct ss_goroutine_grouping {
	/* The largest groups first, then by id. Those whose stack is that of a thread come
	   last, ascending by tid, each on its own. */
	struct ss_goroutine_group *groups;
	size_t count;
	size_t own_count; /* of groups that have a stack of their own */
	const struct ss_goroutine **members; /* owned; the groups point into it */
	bool several; /* they are of several runtimes of Go, each with ids of its own */
};

/* NULL without memory. merge: as in ss_grouping_new(). */
struct ss_goroutine_grouping *
ss_goroutine_grouping_new(const struct ss_snapshot *snapshot, bool merge);
void ss_goroutine_grouping_free(struct ss_goroutine_grouping *grouping);

/* The goroutine whose stack is that of the thread, or NULL. */
const struct ss_goroutine *
ss_goroutine_grouping_find(const struct ss_goroutine_grouping *grouping, pid_t tid);

/* By the runtime of Go that runs them. */
int ss_goroutine_compare_runtimes(const struct ss_goroutine *a,
				  const struct ss_goroutine *b);

/* Whether a snapshot has goroutines of several runtimes. */
bool ss_goroutines_of_several(const struct ss_snapshot *snapshot);

/* "chan receive", or its status: the words of Go. */
const char *ss_goroutine_words(const struct ss_goroutine *goroutine);

SS_DEFINE_CLEANUP(struct ss_goroutine_grouping, ss_goroutine_grouping,
		  ss_goroutine_grouping_free)

#endif
