/*
 * Compares two snapshots task by task.
 */
#ifndef SS_REPORT_DIFF_H
#define SS_REPORT_DIFF_H

#include "report/format.h"
#include "report/group.h"
#include "report/profile.h"
#include "diagnose/progress.h"

/* One of two snapshots. */
struct ss_diff_side {
	const struct ss_snapshot *snapshot;
	const char *file; /* its recording, or NULL */
};

struct ss_diff_input {
	struct ss_diff_side before;
	struct ss_diff_side after;
	const struct ss_progress *progress; /* of the threads of after; or NULL */
};

enum ss_change {
	SS_UNCHANGED, /* in the same place */
	SS_MOVED,
	SS_NEW,
	SS_GONE,
	SS_CHANGE_COUNT,
};

/* "unchanged", "moved", "new", "gone". */
const char *ss_change_name(enum ss_change change);

struct ss_task_change {
	enum ss_change change;
	const struct ss_task *before; /* NULL: new */
	const struct ss_task *after;  /* NULL: gone */
	const struct ss_wait *wait;   /* of after (GONE: of before), or NULL */
	enum ss_group_class class;    /* of a thread, by that wait and its state */
	/* The outermost frames that are equal in both; of UNCHANGED all. */
	size_t common;
	const struct ss_thread_progress *progress; /* of a thread, or NULL */
};

/* The task as it is, or was if it is gone. */
static inline const struct ss_task *ss_change_task(const struct ss_task_change *change)
{
	return change->after ? change->after : change->before;
}

struct ss_diff {
	enum ss_task_kind kind;
	struct ss_task_change *items; /* unchanged ones first; then by class and as in a
					 snapshot */
	size_t count;
	size_t counts[SS_CHANGE_COUNT];
	bool same_process;
	/* Why tasks are not compared: those of a snapshot are not known; or NULL */
	const char *problem;
};

/*
 * Compares the threads, or the tasks of asyncio, of two snapshots. Threads are matched by tid; of
 * two processes by name, equal stacks first. Tasks are matched by name and address. Another task with
 * the name of one that has ended may have got its address: it cannot be told from that one. A task
 * that runs in both snapshots is unchanged if its thread is: threads has the changes of these, and
 * is NULL if these are compared. NULL without memory.
 */
struct ss_diff *ss_diff_new(const struct ss_diff_input *input, enum ss_task_kind kind,
			    const struct ss_diff *threads);
void ss_diff_free(struct ss_diff *diff);

SS_DEFINE_CLEANUP(struct ss_diff, ss_diff, ss_diff_free)

/*
 * Compares two sets of recordings in one profile: functions, stacks and threads.
 */

enum { SS_BEFORE, SS_AFTER, SS_SET_COUNT };

/* Samples in each set. */
struct ss_set_counts {
	uint64_t of[SS_SET_COUNT];
};

struct ss_function_difference {
	uint32_t function;
	struct ss_set_counts self;
	struct ss_set_counts total; /* including callees; recursion counts once */
};

struct ss_stack_difference {
	uint32_t node;
	struct ss_set_counts samples;
};

/* A thread is the same in both sets if host, pid, tid and name are. Its place is that of its last
   sample. */
struct ss_thread_difference {
	enum ss_change change;
	uint32_t thread[SS_SET_COUNT]; /* or SS_ID_NONE */
	uint32_t node[SS_SET_COUNT];
};

/* The largest change of share comes first; threads by change. */
struct ss_profile_diff {
	const struct ss_profile *profile;
	struct ss_set_counts recordings;
	struct ss_set_counts samples;
	struct ss_function_difference *functions; /* all that have samples */
	size_t function_count;
	struct ss_stack_difference *stacks;
	size_t stack_count;
	struct ss_thread_difference *threads;
	size_t thread_count;
	size_t changes[SS_CHANGE_COUNT]; /* of threads */
};

/* NULL without memory. */
struct ss_profile_diff *ss_profile_diff_new(const struct ss_profile *profile);
void ss_profile_diff_free(struct ss_profile_diff *diff);

SS_DEFINE_CLEANUP(struct ss_profile_diff, ss_profile_diff, ss_profile_diff_free)

/* The share of samples in the second set minus that in the first one. */
double ss_profile_diff_change(const struct ss_profile_diff *diff,
			      const struct ss_set_counts *counts);

#endif
