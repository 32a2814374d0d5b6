/*
 * Merges the stacks of several snapshots of a process: which calls threads were in, and in
 * how many of the snapshots.
 */
#ifndef SS_REPORT_MERGED_H
#define SS_REPORT_MERGED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "report/format.h"
#include "report/group.h"
#include "report/json.h"

/*
 * In how many of several snapshots a group is, and with how many members.
 */

struct ss_presence {
	size_t last;	  /* the last snapshot that has members, */
	size_t snapshots; /* and how many have */
	size_t least;	  /* members in one snapshot; 0: not all of them have some */
	size_t most;
	size_t before; /* members in the first snapshot, */
	size_t after;  /* and in the last one */
};

void ss_presence_write_times(struct ss_json *json, const struct ss_presence *presence);
void ss_presence_write_counts(struct ss_json *json, const struct ss_presence *presence);

struct ss_merged_thread {
	const struct ss_task
		*thread;  /* as in the last snapshot in which it has the stack */
	size_t snapshots; /* in which it has the stack */
};

/* A stack that threads had in at least one snapshot. */
struct ss_merged_stack {
	enum ss_group_class class;    /* the first of those that it had */
	size_t last;		      /* the last snapshot that has it, */
	const struct ss_group *group; /* and its group there */
	size_t snapshots;	      /* that have it */
	size_t times;		      /* threads that had it, summed over the snapshots */
	size_t states[128];	      /* these by state */
	SS_VECTOR(struct ss_merged_thread) threads;
};

struct ss_merged {
	struct ss_merged_stack
		*items; /* the class that comes first, then the most often */
	size_t count;
	struct ss_grouping **groupings; /* by snapshot */
	size_t grouping_count;
	size_t thread_count; /* different ones */
};

/*
 * Stacks are equal if they have the same functions and end for the same reason: the places in
 * these functions do not count, so that a thread that runs in a loop has one stack. Stacks
 * of different threads that execute an interpreter are different. NULL without memory.
 */
struct ss_merged *ss_merged_new(const struct ss_snapshots *snapshots);
void ss_merged_free(struct ss_merged *merged);

SS_DEFINE_CLEANUP(struct ss_merged, ss_merged, ss_merged_free)

/*
 * Merges the tasks of asyncio of several snapshots of a process: how many of them did what, and in
 * how many of the snapshots.
 */

/* Tasks of one event loop with the same coroutines that do the same; the lines do not count, as
   for threads. */
struct ss_merged_task {
	struct ss_presence presence;
	SS_VECTOR(const struct ss_task *) members; /* those of the last snapshot */
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

/*
 * Merges the goroutines of several snapshots of a Go program: how many of them did what, and in
 * how many of the snapshots. Two snapshots are compared in this way.
 */

/* Goroutines with the same functions on their stacks that do the same, in Go's words; of one
   runtime of Go, if a process has several. */
struct ss_merged_goroutine {
	struct ss_presence presence; /* in the snapshots that were read */
	/* Those of the last snapshot, ascending by id */
	SS_VECTOR(const struct ss_task *) members;
	SS_VECTOR(uint64_t) first; /* the ids in the first snapshot, ascending */
	size_t same; /* how many goroutines are in the first and the last one */
};

struct ss_merged_goroutines {
	struct ss_merged_goroutine *items; /* the largest first */
	size_t count;
	size_t own_count; /* without those on a thread, which are behind the others */
	/* Snapshots in which goroutines were read: a Go program always has one. Others do not
	   count. */
	size_t read;
	size_t first_read; /* the first of these, */
	size_t last_read;  /* and the last one */
	size_t unread; /* goroutines: the most that could not be read in one of them */
	bool several;  /* a snapshot has goroutines of several runtimes of Go */
	const char *problem; /* of the last snapshot that has one; or NULL */
};

/* NULL without memory. */
struct ss_merged_goroutines *
ss_merged_goroutines_new(const struct ss_snapshots *snapshots);
void ss_merged_goroutines_free(struct ss_merged_goroutines *merged);

/* Why two snapshots are not compared: goroutines were read in one of them only; or NULL. */
const char *ss_merged_goroutines_denial(const struct ss_merged_goroutines *merged);

SS_DEFINE_CLEANUP(struct ss_merged_goroutines, ss_merged_goroutines,
		  ss_merged_goroutines_free)

/* What changed from the first to the last snapshot: "unchanged", "grown", "shrunk", "new" or
   "gone"; of a group that was there only in between "passing". */
const char *ss_merged_goroutine_change(const struct ss_merged_goroutine *group);

#endif
