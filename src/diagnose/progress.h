/*
 * What each thread of a process did between two readings of the scheduler counters. Uses
 * only counters and snapshots taken earlier.
 */
#ifndef SS_DIAGNOSE_PROGRESS_H
#define SS_DIAGNOSE_PROGRESS_H

#include "data/facts.h"
#include "data/snapshot.h"

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
	bool closed;  /* see ss_progress_is_closed() */
	bool at_rest; /* no thread runs, except for those that wake up and wait again */
	uint8_t *leaders; /* owned; by stack: see has_leader() */
};

#endif
