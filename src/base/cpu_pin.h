/*
 * Starts threads and child processes on the current CPU. The scheduler places a new
 * task on the least loaded CPU, which is often the one of a thread of the target; that
 * thread would then wait until the scheduler moves one of the two. A task started here
 * delays only the caller, which is about to wait for it anyway.
 */
#ifndef SS_BASE_CPU_PIN_H
#define SS_BASE_CPU_PIN_H

#include <sched.h>
#include <stdbool.h>

struct ss_cpu_pin {
	cpu_set_t saved;
	bool pinned; /* else nothing was changed */
};

/* Restricts the calling thread, and the tasks that it starts, to the current CPU. */
void ss_cpu_pin_begin(struct ss_cpu_pin *pin);
/* Restores the affinity of the calling thread. A task started in between calls this for
   itself: it has inherited the restriction. */
void ss_cpu_pin_end(const struct ss_cpu_pin *pin);

#endif
