/*
 * How sampling accesses processes. ss_process_access is the only implementation; unit
 * tests have another one, of processes that are made up.
 */
#ifndef SS_SAMPLE_ACCESS_H
#define SS_SAMPLE_ACCESS_H

#include <time.h>

#include "capture/freeze.h"
#include "capture/observe.h"
#include "capture/tasks.h"
#include "process/target.h"
#include "sample/address_space.h"
#include "sample/thread_list.h"

/* What reading the threads of a target keeps: the data of ss_process_access.threads. */
struct ss_target_threads {
	const struct ss_target *target; /* borrowed */
	struct ss_task_list scan;
	clockid_t clock; /* of its CPU time */
	bool has_clock;
	struct ss_buffer text;
};

void ss_target_threads_init(struct ss_target_threads *threads,
			    const struct ss_target *target);
void ss_target_threads_deinit(struct ss_target_threads *threads);

/* The functions that are named here have the contracts. */
struct ss_process_access {
	/* ss_target_open(); leaves ret unchanged if it is too early */
	struct ss_error *(*open_child)(pid_t pid, struct ss_target **ret);
	/* ss_target_list_children() */
	bool (*list_children)(const struct ss_target *target, struct ss_children *ret);
	/* procfs, and the CPU-time clock of the process; data: struct ss_target_threads */
	struct ss_thread_source threads;
	/* ss_address_space_update(), ss_address_space_update_if_due(),
	   ss_address_space_query() */
	struct ss_error *(*update)(struct ss_address_space *space,
				   enum ss_address_space_change *ret);
	struct ss_error *(*update_if_due)(struct ss_address_space *space,
					  enum ss_address_space_change *ret);
	enum ss_mapping_check (*check)(struct ss_address_space *space, uint64_t address);
	/* ss_task_read(), ss_task_read_again(), ss_task_read_run_count() */
	void (*read)(struct ss_tracee *task, const struct ss_target *target,
		     const struct ss_capture_options *options, struct ss_buffer *text);
	void (*read_again)(struct ss_tracee *task, const struct ss_target *target,
			   const struct ss_capture_options *options,
			   struct ss_buffer *text);
	/* ss_task_keep_files() */
	void (*keep_files)(const struct ss_target *target, pid_t tid,
			   struct ss_kept_thread *ret);
	uint64_t (*read_run_count)(const struct ss_target *target, pid_t tid,
				   struct ss_buffer *text);
	/* ss_task_check_fragile() */
	void (*check_fragile)(struct ss_tracee *task, const struct ss_target *target,
			      struct ss_buffer *text);
	/* Chooses the threads that are not watched, after a look at those that run;
	   stops, copies (copy()) and releases each. True: this program may have to wait for a
	   CPU meanwhile. */
	bool (*stop)(struct ss_freeze *freeze, struct ss_look *look,
		     ss_freeze_copier *copy, void *data);
	/* For how long the calling thread has waited for a CPU in its life; 0: not known. */
	uint64_t (*read_waited_ns)(void);
	/* ss_look_find_call() */
	bool (*find_call)(const struct ss_process_memory *memory,
			  const ss_kernel_regs *kernel, struct ss_syscall_text *ret);
	/* Reads the name of a thread. False: it has ended. */
	bool (*read_name)(const struct ss_target *target, pid_t tid,
			  struct ss_buffer *text, char *ret, size_t size);
	/* ss_freeze_release_late() */
	bool (*release_late)(struct ss_freeze *freeze);
	/* ss_arena_copy(), ss_observe_copy(), ss_observe_check(), ss_observe_tasks() */
	void (*copy)(struct ss_arena *arena, const struct ss_capture *capture,
		     struct ss_task_list *tasks, const struct ss_process_memory *memory,
		     const struct ss_capture_options *options, ss_task_predicate *wanted);
	void (*copy_watched)(struct ss_arena *arena, const struct ss_capture *capture,
			     struct ss_task_list *tasks,
			     const struct ss_process_memory *memory,
			     const struct ss_capture_options *options,
			     unsigned freeze_round);
	size_t (*check_watched)(const struct ss_target *target,
				struct ss_task_list *tasks, struct ss_look *look,
				size_t *fragile);
	void (*observe)(struct ss_arena *arena, const struct ss_capture *capture,
			const struct ss_target *target, struct ss_task_list *tasks,
			const struct ss_process_memory *memory,
			const struct ss_capture_options *options, struct ss_look *look);
};

extern const struct ss_process_access ss_process_access;

#endif
