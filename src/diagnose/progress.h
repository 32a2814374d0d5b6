/*
 * What moved between two looks at a process, thread by thread: pure, over counters and
 * snapshots that were taken before.
 */
#ifndef SS_DIAGNOSE_PROGRESS_H
#define SS_DIAGNOSE_PROGRESS_H

#include "model/activity.h"
#include "model/snapshot.h"

/* The progress of a process, while it is put together. */
struct ss_progress {
	const struct ss_activity *before;
	const struct ss_activity *after;
	const struct ss_snapshot *const *snapshots;
	size_t snapshot_count;
	const struct ss_snapshot *last; /* the last of them */
	uint64_t elapsed_ns;
	struct ss_thread_progress *threads; /* owned; one for each thread of last */
	struct ss_intern *strings;
	enum ss_verdict verdict;
	bool closed; /* every thread waits for another one of the process, for ever */
};

/* Whether a wait without end of this kind is what threads do that have nothing to do. */
bool ss_progress_is_idle_kind(enum ss_wait_kind kind);

#endif
