/*
 * Reading blocked threads without stopping them. procfs has the stack pointer and program
 * counter, the stack is read from memory, and a scheduler counter shows whether the
 * thread ran meanwhile. If it did not run from before the freeze of the others until
 * after it, its state belongs to the same instant.
 */
#ifndef SS_CAPTURE_OBSERVE_H
#define SS_CAPTURE_OBSERVE_H

#include "capture/look.h"
#include "capture/stacks.h"

/* Copies the stacks of watched threads that have no copy yet, and their lock words, for
   which it sets freeze_round. */
void ss_observe_copy(struct ss_arena *arena, const struct ss_capture *capture,
		     struct ss_task_list *tasks, const struct ss_process_memory *memory,
		     const struct ss_capture_options *options, unsigned freeze_round);

/*
 * Checks that watched threads have not run, or are still in the call in which they run,
 * except those that are steady already.
 * look: see ss_look_again(); NULL: threads that run in a call are left for a later check.
 * Those that have run are no longer watched, and their copies are dropped. Returns how many
 * of these are still alive; *fragile: how many of them were in a call in which they must not
 * be stopped (may be NULL).
 */
size_t ss_observe_check(const struct ss_target *target, struct ss_task_list *tasks,
			struct ss_look *look, size_t *fragile);

/* Copies the readable data of each task that is not stopped, steady or gone, and sets
   its reason. Does not affect any thread. look: for running threads, or NULL. */
void ss_observe_tasks(struct ss_arena *arena, const struct ss_capture *capture,
		      const struct ss_target *target, struct ss_task_list *tasks,
		      const struct ss_process_memory *memory,
		      const struct ss_capture_options *options, struct ss_look *look);

/* Stores in tasks which other process, if any, traces the thread. */
void ss_observe_tracer(const struct ss_target *target, pid_t tid,
		       struct ss_task_list *tasks);

/* Reads the kernel wait channels and stacks of threads that are in uninterruptible
   sleep or may not be traced, as far as these are readable. */
void ss_observe_kernel(const struct ss_capture *capture, const struct ss_target *target,
		       struct ss_task_list *tasks);

#endif
