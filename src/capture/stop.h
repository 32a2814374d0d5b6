/*
 * What is done to one thread of a freeze.
 */
#ifndef SS_CAPTURE_STOP_H
#define SS_CAPTURE_STOP_H

#include <pthread.h>

#include "capture/freeze.h"

enum { SS_STOP_FEW = 8 };

/*
 * Joins a thread that traced others. To the kernel it ends a moment after pthread_join()
 * knows of it, and only then what it still holds is released. tid: where it has put its
 * id when it has ended.
 */
void ss_stop_join(pthread_t thread, const pid_t *tid);

/* Attaches it, which costs it nothing: its phase is SEIZED, REFUSED or GONE then. */
void ss_stop_seize(struct ss_task *task);

/* Tells it to stop: INTERRUPTED or GONE. */
void ss_stop_interrupt(struct ss_task *task);

/*
 * Takes in its stop, if there is one. The kernel is asked for the registers, which it
 * gives of a stopped thread only (ESRCH); not by waitpid(), whose answer any other
 * thread of the program that waits for children would take away.
 */
void ss_stop_poll(struct ss_freeze *freeze, struct ss_task *task);

/*
 * What is in uninterruptible sleep by now will not stop: nobody waits for it. The others
 * are told once more. This
 * opens files within the freeze; but only when the freeze waits for a late thread,
 * so nothing is delayed by it.
 */
void ss_stop_look_at_late(struct ss_freeze *freeze);

/*
 * Blocks for a while. Few threads: until SIGCHLD, which comes with a stop and which
 * this thread has blocked (another thread of the program may take it away, hence the
 * limit). Many: as long as all of them need for their way to the stop; waking earlier
 * would, at SCHED_FIFO, take the CPU from the very threads that are waited for.
 */
void ss_stop_wait(struct ss_freeze *freeze, size_t late, uint64_t until_ns);

/* Lets it run on, with the signal that its stop intercepted. */
void ss_stop_release(const struct ss_freeze *freeze, struct ss_task *task);

#endif
