/*
 * Compares two sets of recordings in one profile: functions, stacks and threads.
 */
#ifndef SS_OUTPUT_PROFILE_DIFF_H
#define SS_OUTPUT_PROFILE_DIFF_H

#include "output/diff.h"
#include "profile/profile.h"

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
