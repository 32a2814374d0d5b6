/*
 * Stopping and releasing the threads of a target. A thread that is attached stands still
 * from its next signal on, so threads are chosen first, and attached right before they
 * are interrupted. Sleeping threads are stopped before running ones and released after
 * them, to keep the stop of running threads short.
 *
 * Only PTRACE_SEIZE and PTRACE_INTERRUPT are used: when this thread ends for any reason,
 * the kernel detaches all threads and they continue to run (ptrace(2)).
 */
#ifndef SS_CAPTURE_FREEZE_H
#define SS_CAPTURE_FREEZE_H

#include <pthread.h>
#include <sched.h>

#include "capture/tasks.h"

struct ss_freeze {
	const struct ss_target *target;
	const struct ss_capture_options *options;
	struct ss_task_list *tasks;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
	uint64_t
		round_ns; /* when sleeping threads that have stopped are released at the latest */
	uint64_t begin_ns;	/* before the first thread was attached */
	uint64_t end_ns;	/* last release */
	uint64_t duration_ns;	/* from begin to end, sum of all freezes */
	uint64_t max_thread_ns; /* longest stop of a thread (ss_freeze_each() only) */
	unsigned stopped;	/* threads that stopped, each once */
	unsigned late;		/* stops of threads when the others had been released */
	int status_fd;		/* /proc/PID/status, from ss_freeze_prepare() on; or -1 */
	unsigned rounds;	/* after the first: if not 0, the capture is not atomic */
	bool is_mixed; /* a thread executes code of another processor than the program */
	bool took_sigchld; /* a SIGCHLD was consumed; it may have been for another child */
};

/* Lists threads until a pass finds no new one, and chooses those to be stopped. Watched
   threads, running threads and threads with a seccomp filter are not chosen. */
void ss_freeze_choose(struct ss_freeze *freeze);

/* Chooses the running threads, and those with a seccomp filter that are not blocked by
   now; no spared ones. To be called right before the stop, so that few of them begin a
   call in between. */
void ss_freeze_choose_running(struct ss_freeze *freeze);

/* Prepares another freeze: chooses the threads that are no longer watched and, with all,
   those that were released. Without all, the capture is not atomic. */
void ss_freeze_choose_again(struct ss_freeze *freeze, bool all);

/* Reads and opens what the freeze needs. To be called before ss_freeze_stop() or ss_freeze_each(). */
void ss_freeze_prepare(struct ss_freeze *freeze);

/* Stops all chosen threads, and threads that are created meanwhile. On return each
   thread is stopped, gone, or late (phase INTERRUPTED). */
void ss_freeze_stop(struct ss_freeze *freeze);

/* When threads that have stopped are released at the latest: earlier if running ones are among
   them. */
uint64_t ss_freeze_find_limit(const struct ss_freeze *freeze);

/* Waits for late threads after the others were released. Returns false if no more
   threads can stop, or if the deadline has passed. */
bool ss_freeze_stop_late(struct ss_freeze *freeze);

/*
 * For captures that need not be atomic: stops all chosen threads, and copies and
 * releases each as soon as it has stopped, so that no thread waits for another. Calls
 * copy() when threads are in phase STOPPED.
 */
typedef void ss_freeze_copier(void *data);
void ss_freeze_each(struct ss_freeze *freeze, ss_freeze_copier *copy, void *data);

/* Releases the stopped threads of one class. */
void ss_freeze_release(struct ss_freeze *freeze, bool runs);

/* Releases threads that stopped late. The kernel releases threads that have still not
   stopped. */
void ss_freeze_finish(struct ss_freeze *freeze);

/*
 * Between two turns: releases threads that are attached, if they have stopped since: those that were
 * attached in state T and went on, or that turned out to be others than those to be stopped; and those
 * that were interrupted, which the next turn may stop again.
 */
void ss_freeze_release_between(struct ss_freeze *freeze);

/* Releases the threads of an earlier freeze that have stopped by now. Whether any is still
   attached. Only target, options and tasks of the freeze need to be set. */
bool ss_freeze_release_late(struct ss_freeze *freeze);

/*
 * The CPU of the capture thread during a freeze, and the order in which sleeping threads
 * are stopped.
 *
 * The kernel wakes a sleeping thread, to stop and to release it, on the CPU on which it
 * last ran. A running thread of the target on that CPU is delayed, by 4 us each time. The
 * capture thread runs at SCHED_FIFO and must not be there either: the running thread
 * would be delayed for the whole freeze, until the next tick moves it.
 */

struct ss_placement {
	cpu_set_t allowed; /* of the calling thread */
	bool known;
	int cpu; /* that was chosen, or -1 */
};

/*
 * Called by the thread that starts the capture thread and waits for it: makes the new
 * thread start on this CPU, which becomes free when the caller waits. (The kernel might
 * place it on the CPU of a running thread of the target.) Undone by
 * ss_placement_restore().
 */
void ss_placement_prepare(struct ss_placement *placement);
void ss_placement_restore(const struct ss_placement *placement);

/* Called by the same thread afterwards: moves it to the CPU of the capture thread. */
void ss_placement_follow(const struct ss_placement *placement);

/*
 * Moves this thread to a CPU on which no thread of the target runs (the one on which most
 * sleeping threads last ran), and raises it to SCHED_FIFO, if that is allowed. Marks
 * sleeping threads that would wake on the CPU of a running thread, and orders tasks so
 * that these and the others alternate. Only for short-lived threads.
 */
void ss_placement_enter(struct ss_placement *placement, struct ss_task_list *tasks,
			const struct ss_target *target);

/* Allows all CPUs again and restores normal priority. */
void ss_placement_leave(const struct ss_placement *placement);

/*
 * Stopping and releasing a single thread.
 */

enum { SS_STOP_FEW = 8 };

/*
 * Whether this thread holds a thread in a stop. After a capture it may be one that a
 * thread of the target created with CLONE_PTRACE while it was attached: the kernel
 * attaches and stops it, too (clone(2)). The end of this thread releases it.
 */
bool ss_stop_has_tracee(void);

/* Attaches the thread. Its next signal stops it, until it is released. Sets phase to
   SEIZED, REFUSED or GONE. */
void ss_stop_seize(const struct ss_freeze *freeze, struct ss_tracee *task);

/* Asks the thread to stop. Sets phase to INTERRUPTED or GONE. One in state T stands still already:
   sets phase to STOPPED, or leaves it SEIZED if it has gone on. */
void ss_stop_interrupt(struct ss_freeze *freeze, struct ss_tracee *task);

/*
 * Checks whether the thread has stopped, by reading its registers: the kernel refuses
 * that with ESRCH until it has. waitpid() would be unreliable, since another thread of
 * this program that waits for children could take its result.
 */
void ss_stop_poll(struct ss_freeze *freeze, struct ss_tracee *task);

/*
 * Stops waiting for threads that are in uninterruptible sleep now, and interrupts the
 * other late threads once more. This opens a file of each late thread, but only while the
 * freeze waits for it anyway.
 */
void ss_stop_check_late(struct ss_freeze *freeze);

/*
 * Sleeps. With few threads, until SIGCHLD, which reports a stop and is blocked in this
 * thread (another thread of the program may consume it, hence the time limit). With many
 * threads, as long as all need to stop: at SCHED_FIFO, waking up earlier would take the
 * CPU away from them.
 */
void ss_stop_wait(struct ss_freeze *freeze, size_t late, uint64_t until_ns);

/* Detaches the thread, with the signal that its stop intercepted. */
void ss_stop_release(const struct ss_freeze *freeze, struct ss_tracee *task);

#endif
