/*
 * Compares two snapshots thread by thread.
 */
#ifndef SS_OUTPUT_DIFF_H
#define SS_OUTPUT_DIFF_H

#include "output/format.h"
#include "output/group.h"

/* One of two snapshots. */
struct ss_diff_side {
	const struct ss_snapshot *snapshot;
	/* By thread, for a snapshot without waits; or NULL. */
	const struct ss_wait *const *waits;
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

struct ss_thread_change {
	enum ss_change change;
	const struct ss_thread *before; /* NULL: new */
	const struct ss_thread *after;	/* NULL: gone */
	const struct ss_wait *wait;	/* of after (GONE: of before), or NULL */
	enum ss_group_class class;	/* by that wait and its state */
	/* The outermost frames that are equal in both; of UNCHANGED all. */
	size_t common;
	const struct ss_thread_progress *progress; /* or NULL */
};

struct ss_diff {
	struct ss_thread_change *items; /* unchanged ones first; then by class and tid */
	size_t count;
	size_t counts[SS_CHANGE_COUNT];
	/* Threads are matched by tid; of two processes by name, equal stacks first. */
	bool same_process;
};

/* Orders frames by place: the module and the offset in it, not the address. Of an inlined function
   only the name counts, of one of a runtime its name, file and line. */
int ss_diff_compare_frames(const struct ss_frame *a, const struct ss_frame *b);

/* NULL without memory. */
struct ss_diff *ss_diff_new(const struct ss_diff_input *input);
void ss_diff_free(struct ss_diff *diff);

SS_DEFINE_CLEANUP(struct ss_diff, ss_diff, ss_diff_free)

#endif
