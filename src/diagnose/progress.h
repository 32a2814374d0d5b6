/*
 * What each thread of a process did between two readings of the scheduler counters. Uses
 * only counters and snapshots taken earlier.
 */
#ifndef SS_DIAGNOSE_PROGRESS_H
#define SS_DIAGNOSE_PROGRESS_H

#include "data/facts.h"
#include "data/snapshot.h"

/* What a thread did between two readings. */
enum ss_movement {
	SS_MOVEMENT_UNKNOWN = 0, /* the kernel has no schedstat */
	SS_MOVEMENT_NONE,	 /* it has not run */
	SS_MOVEMENT_WOKEN,	 /* it was woken, and waits in the same place again */
	SS_MOVEMENT_BUSY,	 /* it was runnable most of the time */
	SS_MOVEMENT_MOVES,	 /* anything else */
};

/* "none", "woken", ... as in JSON. Never NULL. */
const char *ss_movement_name(enum ss_movement movement);

/* The worst that applies to a process. See stacksnap-hang(1). */
enum ss_verdict {
	SS_VERDICT_IDLE = 0, /* its threads wait for work */
	SS_VERDICT_MOVING,
	SS_VERDICT_BUSY, /* a thread is runnable most of the time */
	/* a thread or goroutine made no progress, waiting for an application lock; or tasks
	   of asyncio wait for each other, or for what nobody can give them */
	SS_VERDICT_BLOCKED,
	SS_VERDICT_STUCK,    /* a thread made no progress, in a wait that is not idle */
	SS_VERDICT_DEADLOCK, /* a cycle of threads that made no progress */
};

/* "idle", "deadlock", ... Never NULL. */
const char *ss_verdict_name(enum ss_verdict verdict);

struct ss_thread_progress {
	size_t thread; /* index in the last snapshot */
	enum ss_movement movement;
	bool stuck;
	uint64_t run_ns;    /* on a CPU */
	uint64_t ready_ns;  /* waiting for one */
	uint64_t runs;	    /* how often it was put on a CPU */
	uint64_t voluntary; /* context switches: it blocked, */
	uint64_t forced;    /* or was preempted */
	/* Innermost function common to all its stacks, or NULL; one of the program's
	   language, if a runtime executes it */
	const char *within;
	unsigned samples; /* snapshots that contain its stack */
	unsigned stops;	  /* snapshots for which it was stopped */
	bool blocked;	  /* it made no progress, waiting for an application lock */
	/* The last snapshot that contains its stack, and its task there; NULL: none does. On a busy
	   machine the last one may not. */
	const struct ss_snapshot *seen_in;
	const struct ss_task *seen;
};

/* Whether the thread waits for a lock whose holder waits for work, in the same function: they take
   turns. If the lock does not record its owner, one of the other threads may be the holder. */
bool ss_thread_has_leader(const struct ss_snapshot *snapshot,
			  const struct ss_task *follower);

/* Whether it is a wait for connections or requests of nobody in particular. NULL: no. */
bool ss_wait_is_for_connections(const struct ss_wait *wait);

struct ss_progress;

/*
 * Compares the counters before and after, with snapshots taken in between, in order of
 * time. All are symbolized; the last one contains all threads and is diagnosed. Counters
 * and snapshots must outlive *ret. Errors: INVALID, NO_MEMORY.
 */
struct ss_error *ss_progress_new(const struct ss_activity *before,
				 const struct ss_activity *after,
				 const struct ss_snapshot *const *snapshots, size_t count,
				 struct ss_progress **ret);

void ss_progress_free(struct ss_progress *progress);

/* The progress of the thread with that index in the last snapshot. */
const struct ss_thread_progress *ss_progress_thread(const struct ss_progress *progress,
						    size_t index);

struct ss_progress {
	const struct ss_activity *before;
	const struct ss_activity *after;
	const struct ss_snapshot *const *snapshots;
	size_t snapshot_count;
	const struct ss_snapshot *last;	    /* the last of them */
	uint64_t elapsed_ns;		    /* between the two readings */
	struct ss_thread_progress *threads; /* owned; one for each thread of last */
	struct ss_intern *strings;
	struct ss_languages languages; /* of the last snapshot */
	enum ss_verdict verdict;
	/* Whether no thread has run and each of them waits, without a time limit, for another
	   thread of the process, or for processes that wait for these: only a signal handler
	   could end that. */
	bool closed;
	bool at_rest; /* no thread runs, except for those that wake up and wait again */
	uint8_t *leaders; /* owned; by stack: see has_leader() */
};

SS_DEFINE_CLEANUP(struct ss_progress, ss_progress, ss_progress_free)

#endif
