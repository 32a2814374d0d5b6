/*
 * Where the capture thread runs during a freeze, and in which order sleepers are taken.
 *
 * The kernel wakes a sleeper, to stop it and to release it, on the CPU it last ran on:
 * if a running thread of the target is there, that one is held up, 4 us for each. And
 * the capture thread itself, at SCHED_FIFO, must not be there either: the running
 * thread would stand still for the whole freeze, until the next tick moves it.
 */
#ifndef SS_CAPTURE_PLACEMENT_H
#define SS_CAPTURE_PLACEMENT_H

#include "capture/tasks.h"

/*
 * Moves this thread to a CPU where no thread of the target runs (the one on which most
 * sleepers last ran), and raises it to SCHED_FIFO, as far as that is allowed. Marks the
 * sleepers that would wake on a running thread's CPU, and orders tasks so that these
 * and the others alternate. To be called by a short-lived thread.
 */
void ss_placement_enter(struct ss_task_list *tasks, const struct ss_target *target);

/* Back to an ordinary priority. (The CPU stays: the thread ends soon.) */
void ss_placement_leave(void);

#endif
