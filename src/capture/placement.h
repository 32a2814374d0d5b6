/*
 * The CPU of the capture thread during a freeze, and the order in which sleeping threads
 * are stopped.
 *
 * The kernel wakes a sleeping thread, to stop and to release it, on the CPU on which it
 * last ran. A running thread of the target on that CPU is delayed, by 4 us each time. The
 * capture thread runs at SCHED_FIFO and must not be there either: the running thread
 * would be delayed for the whole freeze, until the next tick moves it.
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

#endif
