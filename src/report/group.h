/*
 * Groups the threads of a snapshot that have equal stacks, and orders the groups by what
 * they mean to somebody who looks for the reason of a hang.
 */
#ifndef SS_REPORT_GROUP_H
#define SS_REPORT_GROUP_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "stacksnap.h"

/* What the threads of a group do, in the order of the output. A group has the class of the
   member that comes first. */
enum ss_group_class {
	SS_GROUP_CRASH,	   /* its crash ended the process: of a core file */
	SS_GROUP_DEADLOCK, /* in a cycle of threads that wait for each other */
	SS_GROUP_BLOCKED,  /* waits for a lock */
	SS_GROUP_OWNER,	   /* another thread waits for it */
	SS_GROUP_RUNNING,  /* state R */
	SS_GROUP_KERNEL,   /* state D */
	SS_GROUP_OTHER,	   /* waits for anything else, or for what is not known */
	SS_GROUP_IDLE,	   /* waits for work, as far as the kind of its wait tells */
};

/* What a thread does, without regard to others. wait may be NULL. */
enum ss_group_class ss_group_class_of(char state, const struct ss_wait *wait);

struct ss_group {
	const size_t *members; /* indexes of threads, ascending; owned by the grouping */
	size_t count;	       /* at least 1 */
	enum ss_group_class class;
	size_t waiters; /* BLOCKED: threads with this stack, or that wait for the same lock:
			   the larger number; else 0 */
	size_t alike;	/* threads with this stack; count, unless they were not merged */
	size_t first_alike; /* the first of them */
	bool has_main;	    /* contains the main thread: its tid is the pid */
	bool interprets;    /* its thread executes an interpreter */
	/* Its thread executes an interpreter, and its stack is equal to that of the group
	   before: which functions of the program it executes is not known. */
	bool like_previous;
};

struct ss_grouping {
	struct ss_group *groups;
	size_t count;
	size_t *members; /* owned; the groups point into it */
};

/*
 * Groups threads whose stack, end and reason are equal. Threads that execute an interpreter
 * stay apart: their functions of the program are not in these stacks. Order: by class;
 * BLOCKED with the most waiters first; within a class the group of the main thread, then
 * the smallest groups. With merge false every thread is a group of its own, in the order
 * of the snapshot. Returns NULL without memory.
 */
struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot, bool merge);
void ss_grouping_free(struct ss_grouping *grouping);

/* The number of the group of each thread, to be freed; NULL without memory. */
size_t *ss_grouping_numbers(const struct ss_snapshot *snapshot);

SS_DEFINE_CLEANUP(struct ss_grouping, ss_grouping, ss_grouping_free)

/*
 * Groups the goroutines of a snapshot that have equal stacks and do the same.
 */

/* The first one stands for all as to status, wait_reason, stack and on_thread. */
struct ss_goroutine_group {
	const struct ss_task *const *members; /* ascending by id */
	size_t count;
};

struct ss_goroutine_grouping {
	/* The largest groups first, then by id. Those whose stack is that of a thread come
	   last, ascending by tid, each on its own. */
	struct ss_goroutine_group *groups;
	size_t count;
	size_t own_count;		/* of groups that have a stack of their own */
	const struct ss_task **members; /* owned; the groups point into it */
	bool several; /* they are of several runtimes of Go, each with ids of its own */
};

/* NULL without memory. merge: as in ss_grouping_new(). */
struct ss_goroutine_grouping *
ss_goroutine_grouping_new(const struct ss_snapshot *snapshot, bool merge);
void ss_goroutine_grouping_free(struct ss_goroutine_grouping *grouping);

/* The goroutine whose stack is that of the thread, or NULL. */
const struct ss_task *
ss_goroutine_grouping_find(const struct ss_goroutine_grouping *grouping, pid_t tid);

/* By the runtime of Go that runs them. */
int ss_goroutine_compare_runtimes(const struct ss_task *a, const struct ss_task *b);

/* Whether a snapshot has goroutines of several runtimes. */
bool ss_goroutines_of_several(const struct ss_snapshot *snapshot);

/* "chan receive", or its status: the words of Go. */
const char *ss_goroutine_words(const struct ss_task *goroutine);

SS_DEFINE_CLEANUP(struct ss_goroutine_grouping, ss_goroutine_grouping,
		  ss_goroutine_grouping_free)

/*
 * Groups of asyncio's tasks: those that wait for the same in the same places.
 */

/* One that waits for other tasks is on its own: what it waits for tells it apart. */
struct ss_task_group {
	const struct ss_task *const *members; /* ascending by name; at least one */
	size_t count;
};

struct ss_task_grouping {
	struct ss_task_group *groups; /* the largest first, then by their first member */
	size_t count;
	const struct ss_task **members; /* owned; the groups point into it */
};

/* merge: or each task is a group. NULL without memory. */
struct ss_task_grouping *ss_task_grouping_new(const struct ss_snapshot *snapshot,
					      bool merge);
void ss_task_grouping_free(struct ss_task_grouping *grouping);

SS_DEFINE_CLEANUP(struct ss_task_grouping, ss_task_grouping, ss_task_grouping_free)

#endif
