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

#include <sched.h>

#include "capture/tasks.h"

struct ss_placement {
	cpu_set_t allowed; /* of the calling thread */
	bool known;
	int cpu; /* that was chosen, or -1 */
};

/*
 * For the thread that starts the capture thread and waits for it: keeps that one, for
 * its begin, on this CPU, which is free as soon as this one waits. (The kernel might
 * place it beside a running thread of the target.) Undone by ss_placement_restore().
 */
void ss_placement_prepare(struct ss_placement *placement);
void ss_placement_restore(const struct ss_placement *placement);

/* For the same thread, afterwards: goes on where the capture thread was. */
void ss_placement_follow(const struct ss_placement *placement);

/*
 * Moves this thread to a CPU where no thread of the target runs (the one on which most
 * sleepers last ran), and raises it to SCHED_FIFO, as far as that is allowed. Marks the
 * sleepers that would wake on a running thread's CPU, and orders tasks so that these
 * and the others alternate. To be called by a short-lived thread.
 */
void ss_placement_enter(struct ss_placement *placement, struct ss_task_list *tasks,
			const struct ss_target *target);

/* Back to an ordinary priority. (The CPU stays: the thread ends soon.) */
void ss_placement_leave(void);

#endif
