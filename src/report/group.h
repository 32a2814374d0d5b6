/*
 * Groups the tasks of one kind that do the same with equal stacks, and orders the groups by what
 * they mean to somebody who looks for the reason of a hang.
 */
#ifndef SS_REPORT_GROUP_H
#define SS_REPORT_GROUP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "report/format.h"
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
	SS_GROUP_OTHER, /* waits for anything else, or for what is not known; a task of a runtime */
	SS_GROUP_IDLE,	  /* waits for work, as far as the kind of its wait tells */
	SS_GROUP_RUNTIME, /* waits, and belongs to the runtime of a language */
};

/* What a thread does, without regard to others. wait may be NULL. */
enum ss_group_class ss_group_class_of(char state, const struct ss_wait *wait);

struct ss_group {
	/* In the order of the snapshot; owned by the grouping. The first one stands for all as to
	   its stack and status. */
	const struct ss_task *const *members;
	size_t count; /* at least 1 */
	enum ss_group_class class;
	size_t waiters; /* BLOCKED: threads with this stack, or that wait for the same lock:
			   the larger number; else 0 */
	size_t alike;	/* tasks that do the same; count, unless they were not merged */
	size_t first_alike; /* the index of the first of them */
	bool has_main;	    /* contains the main thread: its tid is the pid */
	bool of_library; /* a runtime executes threads, but none of the first one's functions is the program's */
	bool interprets; /* its thread executes an interpreter */
	/* Its thread executes an interpreter, and its stack is equal to that of the group
	   before: which functions of the program it executes is not known. */
	bool like_previous;
};

struct ss_grouping {
	enum ss_task_kind kind;
	struct ss_group *groups;
	size_t count;
	/* Of groups with a stack of their own. Goroutines whose stack is that of a thread are in
	   the others, ascending by tid, each on its own. */
	size_t own_count;
	bool several; /* goroutines of several runtimes of Go, each with ids of its own */
	const struct ss_task **members; /* owned; the groups point into it */
};

/*
 * Groups tasks whose stack, end, reason and status are equal. On their own stay threads that execute an
 * interpreter, as their functions of the program are not in these stacks; and tasks of asyncio that
 * wait for other tasks, which tells them apart. Order of threads: by class; BLOCKED with the most
 * waiters first; within a class the group of the main thread, then the smallest groups. Of others
 * the largest groups come first. With merge false every task is a group of its own, in the order
 * of the snapshot. Returns NULL without memory.
 */
struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot,
				    enum ss_task_kind kind, bool merge);
void ss_grouping_free(struct ss_grouping *grouping);

/* The goroutine whose stack is that of the thread, or NULL. */
const struct ss_task *ss_grouping_find(const struct ss_grouping *grouping, pid_t tid);

/* The number of the group of each task of a kind, to be freed; NULL without memory. */
size_t *ss_grouping_numbers(const struct ss_snapshot *snapshot, enum ss_task_kind kind);

/* Whether a snapshot has goroutines of several runtimes. */
bool ss_tasks_of_several(const struct ss_snapshot *snapshot);

SS_DEFINE_CLEANUP(struct ss_grouping, ss_grouping, ss_grouping_free)

/*
 * For formats that do not group threads: caches the text of stacks that several threads
 * share, up to a limit.
 */

struct ss_stack_cache;

/* Writes the frames of a thread; the same bytes for all threads with this stack_id. */
typedef void ss_stack_writer(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread,
			     const struct ss_format_options *options, FILE *out);

/* The snapshot and options must outlive the cache. Returns NULL without memory. */
struct ss_stack_cache *ss_stack_cache_new(const struct ss_snapshot *snapshot,
					  const struct ss_format_options *options,
					  ss_stack_writer *write);
void ss_stack_cache_free(struct ss_stack_cache *cache);

/* Writes the frames of a thread, from the cache if possible. */
void ss_stack_cache_write(struct ss_stack_cache *cache, const struct ss_task *thread,
			  FILE *out);

/* Whether the frames of this thread, or equal ones, were written. */
bool ss_stack_cache_has_written(const struct ss_stack_cache *cache,
				const struct ss_task *thread);

SS_DEFINE_CLEANUP(struct ss_stack_cache, ss_stack_cache, ss_stack_cache_free)

#endif
