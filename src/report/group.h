/*
 * Groups the tasks of one kind that do the same with equal stacks, and orders the groups by what
 * they mean to somebody who looks for the reason of a hang.
 */
#ifndef SS_REPORT_GROUP_H
#define SS_REPORT_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "report/format.h"
#include "report/names.h"
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
	SS_GROUP_COUNT,
};

/* "in a deadlock", "blocked", ... Never NULL. */
const char *ss_group_class_words(enum ss_group_class class);

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
	bool of_library; /* a runtime executes tasks, but none of the first one's functions is the program's */
	bool passes; /* a runtime executes threads, and a time limit ends the wait of the first one */
	bool awaits_answer;  /* the first one waits for the other end of a connection, */
	bool awaits_request; /* which was accepted where a thread listens */
	bool takes_turns; /* the first one is of a pool whose threads take turns to wait for work */
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
 * waiters first; within a class those of the program, the group of the main thread, then the smallest groups. Threads
 * of a pool that take turns are as those that wait for work. Of others
 * the largest groups come first. With merge false every task is a group of its own, in the order
 * of the snapshot. Returns NULL without memory.
 */
struct ss_grouping *ss_grouping_new(const struct ss_snapshot *snapshot,
				    enum ss_task_kind kind, bool merge);
void ss_grouping_free(struct ss_grouping *grouping);

/* The goroutine whose stack is that of the thread, or NULL. */
const struct ss_task *ss_grouping_find(const struct ss_grouping *grouping, pid_t tid);

/* The number of the group of each task of its snapshot, to be freed; NULL without memory. */
size_t *ss_grouping_numbers(const struct ss_grouping *grouping,
			    const struct ss_snapshot *snapshot);

/* Whether the threads of a group wait for something else than work: a lock, a file, the answer of one
   other end of a connection; or, if a runtime executes the program (language), in a function of it. */
bool ss_group_is_held_up(const struct ss_group *group, bool language);

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

/*
 * Merges the tasks of one kind of one or more snapshots: which calls they were in, and in how many
 * of the snapshots. Two snapshots are compared in this way, too.
 */

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
