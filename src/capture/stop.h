/*
 * Stopping and releasing a single thread.
 */
#ifndef SS_CAPTURE_STOP_H
#define SS_CAPTURE_STOP_H

#include <pthread.h>

#include "capture/freeze.h"

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

/* Asks the thread to stop. Sets phase to INTERRUPTED or GONE. */
void ss_stop_interrupt(struct ss_tracee *task);

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
