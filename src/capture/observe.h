/*
 * Blocked threads without stopping them: procfs gives stack pointer and program
 * counter, the stack is read as it lies there, and a counter of the scheduler tells
 * whether the thread ran meanwhile.
 */
#ifndef SS_CAPTURE_OBSERVE_H
#define SS_CAPTURE_OBSERVE_H

#include "capture/stacks.h"

/* Copies what can be had of every task that is neither stopped nor gone; each gets
   its reason. Threads are not touched. */
void ss_observe_tasks(struct ss_arena *arena, const struct ss_capture *capture,
		      const struct ss_target *target, struct ss_task_list *tasks,
		      const struct ss_memory *memory,
		      const struct ss_capture_options *options);

#endif
