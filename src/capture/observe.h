/*
 * Blocked threads without stopping them: procfs gives stack pointer and program
 * counter, the stack is read as it lies there, and a counter of the scheduler tells
 * whether the thread ran meanwhile. If that stood still from before the freeze of the
 * others to after it, the thread was seen at the same moment as they.
 */
#ifndef SS_CAPTURE_OBSERVE_H
#define SS_CAPTURE_OBSERVE_H

#include "capture/stacks.h"

/* Copies the stacks of the watched threads that have not been copied, and their locks,
   which get this moment. */
void ss_observe_copy(struct ss_arena *arena, const struct ss_capture *capture,
		     struct ss_task_list *tasks, const struct ss_memory *memory,
		     const struct ss_capture_options *options, unsigned moment);

/* Whether the watched threads have been still so far. Those that were not are no longer
   watched, and their copies dropped. How many moved, and live. */
size_t ss_observe_check(const struct ss_target *target, struct ss_task_list *tasks);

/* Copies what can be had of every task that is neither stopped, steady nor gone; each
   gets its reason. Threads are not touched. */
void ss_observe_tasks(struct ss_arena *arena, const struct ss_capture *capture,
		      const struct ss_target *target, struct ss_task_list *tasks,
		      const struct ss_memory *memory,
		      const struct ss_capture_options *options);

/* Notes in tasks who else traces that thread, if anyone does. */
void ss_observe_tracer(const struct ss_target *target, pid_t tid,
		       struct ss_task_list *tasks);

/* Where in the kernel threads are that wait there uninterruptibly, or that may not be
   looked at; as far as that may be read. */
void ss_observe_kernel(const struct ss_capture *capture, const struct ss_target *target,
		       struct ss_task_list *tasks);

#endif
