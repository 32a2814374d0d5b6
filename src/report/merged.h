/*
 * Merges the tasks of one kind of one or more snapshots: which calls they were in, and in how many
 * of the snapshots. Two snapshots are compared in this way, too.
 */
#ifndef SS_REPORT_MERGED_H
#define SS_REPORT_MERGED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "report/format.h"
#include "report/group.h"
#include "report/names.h"

/* In how many of several snapshots a group is, and with how many members. */
struct ss_presence {
	size_t last;	  /* the last snapshot that has members, */
	size_t snapshots; /* and how many have */
	size_t least;	  /* members in one snapshot; 0: not all of them have some */
	size_t most;
	size_t before; /* members in the first snapshot, */
	size_t after;  /* and in the last one */
};

struct ss_merged_member {
	const struct ss_task
		*task;	  /* as in the last snapshot in which it is in the group, */
	size_t last;	  /* which is this one */
	size_t snapshots; /* in which it is in the group */
	bool first;	  /* also in the first one that was read */
};

/* Tasks that had a stack, and did the same, in at least one snapshot. */
struct ss_merged_group {
	struct ss_presence presence;
	enum ss_group_class class;	/* the first of those that it had */
	const struct ss_group *group;	/* a group of the last snapshot that has it */
	size_t times;			/* members, summed over the snapshots */
	size_t states[SS_STATE_COUNTS]; /* these by state, of threads */
	SS_VECTOR(struct ss_merged_member) members; /* not of one snapshot */
	/* Those of the last snapshot that has some, in its order */
	SS_VECTOR(const struct ss_task *) tasks;
	size_t same; /* members in the first and the last snapshot */
};

struct ss_merged {
	enum ss_task_kind kind;
	/* Goroutines on a thread come last. Threads: the class that comes first, then the most often,
	   of several processes the fewest; others: the largest first. Of one snapshot as in its
	   grouping. */
	struct ss_merged_group *items;
	size_t count;
	size_t own_count; /* without goroutines on a thread */
	struct ss_grouping *
		*groupings; /* owned, like the next one; by snapshot, or NULL */
	size_t grouping_count;
	size_t thread_count; /* different threads */
	/* Snapshots in which tasks of the kind are known. Others do not count. */
	size_t read;
	size_t first_read; /* the first of these, */
	size_t last_read;  /* and the last one */
	size_t changed; /* tasks: the most that ran while they were read, in a snapshot, */
	size_t unread;	/* and the most that could not be read */
	bool several;	/* a snapshot has goroutines of several runtimes of Go */
	const char *problem; /* of the last snapshot that has one; or NULL */
};

/*
 * The groups of one snapshot are those of ss_grouping_new(). Of several, stacks are equal if they
 * have the same functions and end for the same reason: the places in these functions do not count,
 * so that a thread that runs in a loop has one stack. Stacks of different threads that execute an
 * interpreter are different, as are those of tasks of different event loops. With merge false, every
 * task of one snapshot is on its own. NULL without memory.
 */
struct ss_merged *ss_merged_new(const struct ss_snapshots *snapshots,
				enum ss_task_kind kind, bool merge);
void ss_merged_free(struct ss_merged *merged);

SS_DEFINE_CLEANUP(struct ss_merged, ss_merged, ss_merged_free)

/* Why two snapshots are not compared: goroutines were read in one of them only; or NULL. */
const char *ss_merged_denial(const struct ss_merged *merged);

/* What changed from the first to the last snapshot: "unchanged", "grown", "shrunk", "new" or
   "gone"; of a group that was there only in between "passing". */
const char *ss_merged_change(const struct ss_merged_group *group);

#endif
