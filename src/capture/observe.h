/*
 * Reading threads without stopping them.
 */
#ifndef SS_CAPTURE_OBSERVE_H
#define SS_CAPTURE_OBSERVE_H

#include "capture/stacks.h"
#include "capture/tasks.h"
#include "process/perf.h"
#include "process/process_memory.h"

/*
 * Running threads, before they are stopped. A thread that moves data in a
 * system call must not be stopped: the call would return with a part of it. While it is in
 * the call its user registers and its stack do not change, so they are read as those of a
 * blocked thread are. Three sources tell where a running thread is:
 *
 * - Samples of its CPU (process/perf.h), which need a privilege. A later sample with the
 *   same registers shows that it is still there.
 * - /proc/TID/syscall, if it sleeps in between.
 * - Without that privilege, samples of the thread in user space (struct ss_user_sampler). A thread that
 *   runs and is not seen there is not stopped, and has no stack.
 */

struct ss_look {
	const struct ss_target *target;
	const struct ss_process_memory *memory;
	const struct ss_capture_options *options;
	uint64_t limit_ns; /* to see a thread that waits for a CPU */
	struct ss_cpu_sampler cpus;
	struct ss_user_sampler users; /* where cpus is refused; while it looks */
	struct ss_buffer text;
};

/* The call in which a sample found a thread, whose user registers are those. False: it was
   in user space, or in a page fault or an interrupt. */
bool ss_look_find_call(const struct ss_target *target,
		       const struct ss_process_memory *memory,
		       const ss_kernel_regs *kernel, struct ss_syscall_text *ret);

/*
 * Looks at the threads that would be stopped although they run (phase SEEN, runs, neither
 * watched nor known to compute). Those in a call that must not be interrupted become watched. Threads of which
 * that is not certain, but which were in such a call before, or were only in the kernel, become
 * spared. Those that are put off are not if they wait for a CPU in user space, or are on one and have
 * not just woken up.
 * Allocates, and opens files.
 */
void ss_look_at_running(struct ss_look *look, struct ss_task_list *tasks);

/* The same for a short time, without such samples: for threads that will not be stopped. */
void ss_look_briefly(struct ss_look *look, struct ss_task_list *tasks);

/* Looks again at the watched threads that run: sets left for those that are no longer in
   their call, or perhaps not. */
void ss_look_again(struct ss_look *look, struct ss_task_list *tasks);

void ss_look_deinit(struct ss_look *look);

/*
 * Blocked threads. procfs has the stack pointer and program
 * counter, the stack is read from memory, and a scheduler counter shows whether the
 * thread ran meanwhile. If it did not run from before the freeze of the others until
 * after it, its state belongs to the same instant.
 */

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
