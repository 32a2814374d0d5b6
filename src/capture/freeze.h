/*
 * Stopping and releasing the threads of a target. Everything is attached first,
 * which costs the target nothing; sleepers are stopped before running threads, and
 * running threads released before sleepers, so that those stand still the shortest.
 *
 * Only PTRACE_SEIZE and PTRACE_INTERRUPT are used: if this thread ends, however, at
 * whatever point, the kernel detaches every thread and it runs on (ptrace(2)).
 */
#ifndef SS_CAPTURE_FREEZE_H
#define SS_CAPTURE_FREEZE_H

#include "capture/tasks.h"

struct ss_freeze {
	const struct ss_target *target;
	const struct ss_capture_options *options;
	struct ss_task_list *tasks;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	uint64_t round_ns;    /* what has stopped is held no longer than to here */
	uint64_t begin_ns;    /* first interrupt */
	uint64_t end_ns;      /* last release */
	uint64_t held_ns;     /* from begin to end, all turns together */
	uint64_t held_max_ns; /* a single thread's (of ss_freeze_each() only) */
	unsigned stopped;     /* threads that did stop */
	unsigned rounds;      /* beyond the first: not all stood at one moment */
	bool foreign;	      /* a thread runs 32-bit code */
	bool took_sigchld;    /* one was taken, which may have told of another child */
};

uint64_t ss_freeze_now(void);

/* Lists and attaches threads, but for what is watched, until a pass finds no new one. */
void ss_freeze_seize(struct ss_freeze *freeze);

/* Another turn: attaches what is not watched (any more), and, with all, what has been
   released. Without, not all will have stood at one moment. */
void ss_freeze_seize_again(struct ss_freeze *freeze, bool all);

/* Stops all that is attached, and threads that appear meanwhile. When it returns
   each thread is stopped, gone, or late (phase INTERRUPTED). */
void ss_freeze_stop(struct ss_freeze *freeze);

/* Another round, after the release of what had stopped: waits for late threads. False:
   there are none that could still stop, or the deadline has passed. */
bool ss_freeze_stop_late(struct ss_freeze *freeze);

/*
 * Where no common moment is wanted: stops all that is attached, and copies and releases
 * each thread as soon as it has stopped, so that none stands still for another. copy() is
 * called when there are threads in phase STOPPED.
 */
typedef void ss_freeze_copier(void *data);
void ss_freeze_each(struct ss_freeze *freeze, ss_freeze_copier *copy, void *data);

/* Releases the stopped threads of one class. */
void ss_freeze_release(struct ss_freeze *freeze, bool runs);

/* Releases whatever stopped late; what has not even now is left to the kernel. */
void ss_freeze_finish(struct ss_freeze *freeze);

#endif
