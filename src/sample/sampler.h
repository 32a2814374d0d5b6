/*
 * Captures the threads of a process repeatedly. A blocked thread that has not run since
 * its last capture is skipped; a blocked thread that has run is read without stopping it;
 * a running thread is stopped for as long as it takes to copy its own stack. A blocked
 * thread whose stack cannot be unwound without a register that only a stop provides is
 * stopped once, at the caller's request (see thread_list.h).
 *
 * Where the kernel samples the CPUs (process/perf.h), no running thread is stopped either:
 * one that was on a CPU at the tick has the stack of that moment, and one that waits for a CPU
 * since it was preempted has the stack of when it left its last one (process/perf.h). The
 * others, such as a thread that has just woken up, are captured as above. Of a process with
 * frames of a runtime, a sample counts only if the kernel has copied with it what these need
 * (process/sample_reader.h), and a thread that waits for a CPU is captured. There, a thread ran at the tick
 * if it was sampled: one that sleeps by now has native frames if the copies are not enough, and one
 * that has woken up since gets a moment to sleep again.
 *
 * A thread that was in a call that moves data, which a stop would end early, is not stopped for ten
 * seconds: when it is seen in user space, it may soon make the next one.
 *
 * A thread is stopped for at most 1 % of its time, and, as far as that can be foreseen, not for longer
 * than 5 ms at once (struct ss_stop_limit). A sample for which it would be has no stack.
 *
 * Threads do not stay attached between two ticks: each signal for such a thread would
 * stop it until we wake up and deliver the signal, and no debugger could attach.
 * Attaching again costs a running thread only about a microsecond.
 *
 * One thread makes all calls of a sampler. If a thread of the target did not stop in
 * time, or ended while attached (late), the calling thread must end: only then does the
 * kernel release the former, or report the end of the latter to its parent.
 */
#ifndef SS_SAMPLE_SAMPLER_H
#define SS_SAMPLE_SAMPLER_H

#include <time.h>

#include "capture/freeze.h"
#include "capture/observe.h"
#include "capture/tasks.h"
#include "process/perf.h"
#include "process/target.h"
#include "sample/address_space.h"
#include "sample/gathers.h"
#include "sample/thread_list.h"

/*
 * How sampling accesses processes. ss_process_access is the only implementation; unit
 * tests have another one, of processes that are made up.
 */

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
	bool (*find_call)(const struct ss_target *target,
			  const struct ss_process_memory *memory,
			  const ss_kernel_regs *kernel, struct ss_syscall_text *ret);
	/* ss_fragile_running() */
	bool (*moves_data)(const struct ss_target *target, pid_t tid,
			   const struct ss_syscall_text *call, bool look);
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

/*
 * Bounds how long threads stand still. A stop of a thread takes as long as this program waits for a
 * CPU meanwhile, and a thread that waits for one stops only when it has got it: on a busy machine both
 * take long, and a tick waits for it.
 */
struct ss_stop_limit {
	unsigned most;		 /* threads that may be stopped in a tick: adapts */
	unsigned left;		 /* of these, in this tick */
	size_t next;		 /* where the choice begins, so that each has its turn */
	uint64_t pause_until_ns; /* CLOCK_MONOTONIC; none is stopped before */
	bool waits; /* this program does for a CPU also while it stops threads, as far as known */
	uint64_t
		waited_ns; /* by this thread for a CPU, as of the last tick; 0: not known */
	uint64_t
		spent_ns; /* on the stops of a capture, with the wait for those that do not stop */
	uint64_t not_stopped; /* samples without a stack for these reasons */
	/* Of threads that were released after their tick; part of the next one */
	uint64_t late_ns;
	uint64_t late_max_ns;
};

/* What samples of the kernel have of a thread. */
enum ss_kernel_samples {
	SS_SAMPLES_OF_TIMES,  /* only that it ran: its runtime needs more */
	SS_SAMPLES_OF_STACKS, /* all that is needed: no runtime does */
	SS_SAMPLES_OF_RUNTIMES, /* with copies of what its runtime needs, if these are enough */
};

struct ss_sampler {
	struct ss_target *target;		/* borrowed */
	const struct ss_process_access *access; /* likewise */
	struct ss_capture_options options;
	struct ss_address_space space;
	struct ss_target_threads source;
	struct ss_thread_list threads;
	struct ss_task_list tasks; /* the threads that are due */
	struct ss_look look;
	struct ss_arena *arena; /* borrowed */
	struct ss_gathers gathers;
	struct ss_buffer text;
	/* The kernel reports mappings of code, and has reported none since the memory map was read:
	   set by the caller before each tick. */
	bool is_current;
	uint64_t swept_ns; /* ss_sampler_take(): when ended threads were last searched */
	/* Only threads that ran at the tick are sampled: set after ss_sampler_init(), with a
	   filter for state R. */
	bool on_cpu;
	/* Samples of the CPUs at a tick, which the caller sets, or none, until threads are not captured again
	   any more; their stacks are kept in the arena. */
	const struct ss_on_cpu_sample *clocked;
	size_t clocked_count;
	enum ss_kernel_samples by_kernel; /* set by the caller before each tick */
	struct ss_switch_stacks switches;
	SS_VECTOR(struct ss_capture_thread) running; /* by the kernel, in this capture */
	/* The threads of the last capture, in its order; valid until the next tick. */
	SS_VECTOR(struct ss_sampled_thread *) captured;
	pid_t inner_pid;  /* in its innermost pid namespace; 0: not known */
	bool has_new_ids; /* of threads in that namespace, until the caller resets it */
	bool late;	  /* the calling thread must end */
	uint64_t thread_stops;
	struct ss_stop_limit limit;
	/* How often a tick waits 0.1 ms for threads to sleep again that slept at the tick; at least four
	   times. */
	unsigned patience;
};

/* The result of one tick. */
struct ss_tick {
	enum ss_address_space_change change; /* since the last tick */
	/* of the threads that were due; NULL: none. Owned by the sampler; valid until
	   the next call */
	struct ss_capture *capture;
	uint64_t stopped_ns;	 /* of all threads together */
	uint64_t stopped_max_ns; /* the longest */
};

/* options are copied, their mode is set to AUTO. Several samplers that work in turn may
   share the arena: a capture stays there until the next one. A sampler must not be
   moved. */
void ss_sampler_init(struct ss_sampler *sampler, struct ss_target *target,
		     const struct ss_capture_options *options, struct ss_arena *arena,
		     const struct ss_process_access *access);
void ss_sampler_deinit(struct ss_sampler *sampler);

/*
 * Captures the threads that have run. The caller must accept or reject each thread of the
 * capture (ss_thread_accept(), ss_thread_reject()), or discard the tick. Mappings may
 * have changed meanwhile, see ss_recorder_check_frames(). Errors: NO_MEMORY, DENIED, TRACED, SYSTEM.
 * The end of the process is a change, not an error.
 */
struct ss_error *ss_sampler_tick(struct ss_sampler *sampler, struct ss_tick *ret);

/*
 * Another kind of tick: no thread is stopped or searched, the capture is made of those of
 * the count samples that are of this process and pass its filter. Their stacks are in the
 * arena. The memory map is the one that was read before; see ss_sampler_follow().
 */
struct ss_error *ss_sampler_take(struct ss_sampler *sampler,
				 const struct ss_on_cpu_sample *samples, size_t count,
				 struct ss_tick *ret);

/* After such a tick, and after one without samples: reads the memory map if it is time
   for that. */
struct ss_error *ss_sampler_follow(struct ss_sampler *sampler, struct ss_tick *tick);

/* Moves the threads of a capture to the one that an update of the memory map has made.
   False: no memory. */
bool ss_sampler_move(struct ss_sampler *sampler, const struct ss_capture *from);

/* Whether another module was mapped at an address, as of the last but one memory map. */
bool ss_sampler_was_other(const struct ss_sampler *sampler, uint64_t address);

/* Takes the worst result of the mapping checks; reads all maps if necessary. stale: the
   capture does not match the current mappings. */
struct ss_error *ss_sampler_confirm(struct ss_sampler *sampler,
				    enum ss_mapping_check check, struct ss_tick *tick,
				    bool *stale);

/* Captures the threads again that were rejected with retry. */
struct ss_error *ss_sampler_retry(struct ss_sampler *sampler, struct ss_tick *tick);

/* Releases threads that have stopped too late for the capture. Whether any is still
   attached. To be called by the thread that took the tick, while it waits for others. */
bool ss_sampler_release_late(struct ss_sampler *sampler);

/*
 * Ids in the innermost pid namespace of the process, by which runtimes and locks know threads.
 */

/* To be called once, before the others. */
void ss_sampler_find_namespace(struct ss_sampler *sampler);

/* Whether these ids may differ from ours. */
bool ss_sampler_is_in_namespace(const struct ss_sampler *sampler);

/* 0: not known. */
pid_t ss_sampler_inner_tid(struct ss_sampler *sampler, struct ss_sampled_thread *thread);

/* A thread that was seen before, by that id; or NULL. */
struct ss_sampled_thread *ss_sampler_find_inner(const struct ss_sampler *sampler,
						pid_t tid);

/* Drops the capture: threads that are still due are captured at the next tick. */
void ss_sampler_discard(struct ss_sampler *sampler);

#endif
