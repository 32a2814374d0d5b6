/*
 * The threads of a sampled process, and which of them have run since they were captured.
 * Reads as little as possible: threads that have been quiet for some ticks are not read
 * one by one as long as the CPU time of the process shows that none of them has run.
 *
 * The kernel updates the CPU time of a thread when it leaves its CPU, and at least at each
 * scheduler tick: a thread that is on a CPU for the first time since then shows none. So this
 * needs samples of the CPUs (ss_thread_list_expect()). Rarely it shows none for a short time on a
 * CPU, perhaps because the time of an interrupt, or that in which a host took the CPU away, is taken
 * from it (update_rq_clock_task()). So some of the quiet threads are read in each tick, and all of
 * them within CHECK_TICKS.
 */
#ifndef SS_SAMPLE_THREAD_LIST_H
#define SS_SAMPLE_THREAD_LIST_H

#include "base/vector.h"
#include "base/proc_process.h"
#include "sample/thread_state.h"

/* Data about the process. thread_source.h implements it for a target; tests have their
   own. */
struct ss_thread_source {
	void *data;
	/* The ids of all threads, ascending; valid until the next call. False: no
	   memory. */
	bool (*list)(void *data, const pid_t **ret, size_t *ret_count);
	/* How many threads there are; 0: the process has ended. */
	size_t (*count)(void *data);
	/* Opens the schedstat of a thread; -1: it is opened for each read. */
	int (*open)(void *data, pid_t tid);
	/* Reads it. False: the thread has ended. With an open file it allocates
	   nothing. */
	bool (*read)(void *data, pid_t tid, int fd, struct ss_schedstat *ret);
	/* The CPU time of all current and former threads, which is the sum of the first fields
	   of their schedstat. False: unknown. */
	bool (*cpu_time)(void *data, uint64_t *ret);
};

/*
 * The CPU time of the process minus that of the threads in the list. It stays the same from
 * tick to tick as long as no thread ends and no thread has run other than those that were
 * read.
 */
struct ss_time_balance {
	bool known;
	uint64_t rest_ns; /* that difference */
	unsigned misses;  /* in a row: ticks in which other threads seem to have run */
	unsigned
		failures; /* how often it was determined since the last tick in which none has */
	unsigned pause_ticks; /* before it is determined again */
};

struct ss_thread_list {
	const struct ss_thread_source *source;
	SS_VECTOR(struct ss_sampled_thread) items; /* ascending by tid */
	/* Indices of threads, ascending: all but those that are quiet, which are neither due
	   nor gone. */
	SS_VECTOR(uint32_t) active;
	SS_VECTOR(uint32_t) free_slots;
	uint32_t slot_count; /* all slots are below */
	unsigned open_files;
	uint64_t run_ns; /* of all in items, as they were read */
	size_t checked;	 /* index of the quiet thread to be read next */
	/* What is on a CPU at a tick is known, see above. Set by the owner. */
	bool sampled;
	struct ss_time_balance balance;
};

/* The i-th of the active threads. */
static inline struct ss_sampled_thread *
ss_thread_list_active(const struct ss_thread_list *list, size_t i)
{
	return &list->items.items[list->active.items[i]];
}

/* The source is borrowed. */
void ss_thread_list_init(struct ss_thread_list *list,
			 const struct ss_thread_source *source);
void ss_thread_list_deinit(struct ss_thread_list *list);

/* A thread is known to be on a CPU at the next tick: it will be read. */
void ss_thread_list_expect(struct ss_thread_list *list, pid_t tid);

/* Begins a tick: drops ended threads, adds new ones, and determines which threads are
   due. False without memory. */
bool ss_thread_list_refresh(struct ss_thread_list *list);

/* Finds a thread by its id; NULL if there is none. */
struct ss_sampled_thread *ss_thread_list_find(const struct ss_thread_list *list,
					      pid_t tid);

/*
 * For a thread that is known to have run, without a refresh: finds or adds it, and reads
 * its counters. A thread that has ended since stays in the list until the next tick
 * begins. NULL: no memory.
 */
struct ss_sampled_thread *ss_thread_list_take(struct ss_thread_list *list, pid_t tid);

/* Begins a tick in which threads are only taken: drops those that had ended by the last
   one. sweep: finds out which others have ended. */
void ss_thread_list_begin(struct ss_thread_list *list, bool sweep);

/* Whether a thread that was blocked at its last capture has not run since. */
bool ss_thread_list_is_unchanged(const struct ss_thread_list *list,
				 const struct ss_sampled_thread *thread);

/* The run count of a stopped thread; 0: unknown. Allocates nothing. */
uint64_t ss_thread_list_run_count(const struct ss_thread_list *list,
				  const struct ss_sampled_thread *thread);

#endif
