/*
 * The threads of a target during a capture: their state before the freeze, from procfs,
 * and what happens to each during the freeze.
 */
#ifndef SS_CAPTURE_TASKS_H
#define SS_CAPTURE_TASKS_H

#include <assert.h>

#include "arch/arch.h"
#include "base/buffer.h"
#include "base/vector.h"
#include "data/capture.h"
#include "process/target.h"
#include "process/process_memory.h"

/* Only ss_task_enter() changes it. What may follow is in ss_task_may_enter(). */
enum ss_task_phase {
	SS_TASK_SEEN,	     /* listed; not attached, or not stopped since */
	SS_TASK_WATCHED,     /* read without stopping it: blocked, or in such a call */
	SS_TASK_STEADY,	     /* watched, and the same from before to after the freeze */
	SS_TASK_CHOSEN,	     /* to be stopped, not attached yet */
	SS_TASK_SEIZED,	     /* attached; it stands still from its next signal on */
	SS_TASK_INTERRUPTED, /* asked to stop, not stopped yet */
	SS_TASK_STOPPED,
	SS_TASK_RELEASED,
	SS_TASK_SLEPT,	  /* it ran, and went to sleep before its stack was copied */
	SS_TASK_GONE,	  /* ended, or its process executed another program */
	SS_TASK_ZOMBIE,	  /* the leader has ended, other threads are alive */
	SS_TASK_WORKER,	  /* a kernel worker (io_uring, vhost): it has no user stack */
	SS_TASK_REFUSED,  /* SEIZE was refused: traced, or about to end */
	SS_TASK_DENIED,	  /* permission to read only its state */
	SS_TASK_EXCLUDED, /* rejected by the filter */
};

/* Whether a seccomp filter decides on the calls of a thread. */
enum ss_task_filter {
	SS_FILTER_UNKNOWN,
	SS_FILTER_NONE,
	SS_FILTER_NONE_LATELY, /* none when it was last read; it may be new */
	SS_FILTER_PRESENT,     /* it cannot be removed */
};

struct ss_tracee {
	pid_t tid;
	enum ss_task_phase phase;
	const struct ss_arch *arch; /* of its process */
	/* What is known of it: one word. */
	bool runs : 1; /* running or runnable, if known */
	/* attached to the capture thread; if it ended meanwhile, its parent cannot reap
	   it before the capture thread ends */
	bool attached : 1;
	bool interrupted : 1; /* and it was asked to stop: its stop may have ended a call */
	bool disturbs : 1;    /* it would wake up on the CPU of a running thread */
	bool computes : 1; /* hardly ever in the kernel: it is stopped without a look */
	bool borrowed : 1; /* files belong to someone else */
	/* Its files are those of the previous capture, so it is the same thread. */
	bool known : 1;
	/* before: it has not run since. Otherwise the copies of its stack have to be equal. */
	bool not_run : 1;
	bool fragile : 1; /* in a system call that a stop would end early; see ss_fragile_blocked() */
	bool moved : 1; /* it was watched, and has run meanwhile */
	/* It runs in that call, see capture/observe.h: kernel has its registers. */
	bool in_call : 1;
	bool left : 1;	 /* in_call: it has been seen elsewhere since */
	bool spared : 1; /* perhaps in that call: not stopped */
	bool put_off : 1; /* likewise, while it waits for a CPU in a call: it most likely sleeps soon */
	bool woken : 1; /* put_off, also while it is on a CPU: it slept until just now */
	bool limited : 1; /* not stopped: that would be for too long, see sample/sampler.h */
	/* Not stopped: it was lately in a call that moves data, and most likely makes the next one.
	   See sample/sampler.h. */
	bool moves_data : 1;
	bool ran : 1;	  /* it was in state R when it was read first */
	bool partial : 1; /* never stopped: registers are known only from call */
	bool consistent : 1;
	char state;
	char comm[SS_COMM_MAX];
	int signal;	       /* intercepted by its stop; delivered at the release */
	int processor;	       /* CPU it last ran on */
	uint64_t user_ticks;   /* clock ticks in user space */
	uint64_t system_ticks; /* and in the kernel */
	struct ss_syscall_text call; /* before the freeze */
	/* number of times it was scheduled, read just before call; 0: unknown */
	uint64_t run_count;
	/* The same, if it was read before the task; ss_task_read() and ss_task_read_again()
	   take it. 0: they read it. */
	uint64_t counted;
	struct ss_kept_thread files;
	/* In the previous capture of a series it was in the same call: it has the same
	   registers. NULL: not known. */
	const struct ss_capture_thread *before;
	enum ss_task_filter filter;
	uint64_t sampled_ns; /* when it was last seen on a CPU; CLOCK_MONOTONIC */
	/* CLOCK_MONOTONIC; when it was attached or last seen not to have stopped yet */
	uint64_t running_ns;
	uint64_t stopped_ns;   /* upper bound of the time it was stopped */
	ss_kernel_regs kernel; /* at the stop */
	const char *reason;    /* why the stack is incomplete, or NULL */
	const char *wchan;     /* in the capture's strings, or NULL; likewise */
	const char *kernel_stack;
	struct ss_stack_copy stacks[SS_STACK_COPIES];
	struct ss_lock_copy lock;   /* freeze_round is set before the copy */
	unsigned turn;		    /* see struct ss_capture_thread */
	struct ss_live_frame *live; /* LIVE */
	size_t live_count;
	enum ss_end live_end;
};

/* Whether a state may follow another one, or itself. */
bool ss_task_may_enter(enum ss_task_phase from, enum ss_task_phase to);

static inline void ss_task_enter(struct ss_tracee *task, enum ss_task_phase phase)
{
	assert(ss_task_may_enter(task->phase, phase));
	task->phase = phase;
}

/* Read without stopping it. */
static inline bool ss_task_is_watched(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_WATCHED || task->phase == SS_TASK_STEADY;
}

/* Alive, and neither stopped nor about to be. */
static inline bool ss_task_is_unstopped(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_SEEN || ss_task_is_watched(task);
}

/* In uninterruptible sleep, or ended: it is not waited for. */
static inline bool ss_task_is_slow(const struct ss_tracee *task)
{
	return task->state == 'D' || task->state == 'Z' || task->state == 'X';
}

struct ss_task_list {
	SS_VECTOR(struct ss_tracee) items;
	pid_t *sorted;	     /* the tids in items, ascending */
	size_t sorted_count; /* during a pass, may be less than items.count */
	size_t sorted_capacity;
	char *directory; /* buffer for getdents64 */
	unsigned unseen; /* threads without room in items, during the freeze */
	/* Reasons for threads that another process traces: without and with a stack.
	   Empty if no other tracer is known. */
	char traced[160];
	char traced_read[192];
	bool dumping_core; /* the process: an interrupt would cut the dump short */
};

/* Reserves room for count threads: the freeze must not allocate. */
bool ss_tasks_reserve(struct ss_task_list *list, size_t count);
void ss_tasks_deinit(struct ss_task_list *list);

/* The number of threads of the process; 0 if it has ended. */
size_t ss_tasks_count_now(const struct ss_target *target);

/* Appends threads that are not in the list yet, with tid and phase SEEN only. Never
   allocates: threads without room are counted in unseen. Returns the number of appended
   threads. */
size_t ss_tasks_scan(struct ss_task_list *list, const struct ss_target *target);

/* The number of times the thread was scheduled: third field of schedstat
   (sched-stats.rst). 0 if unknown. */
uint64_t ss_task_read_run_count(const struct ss_target *target, pid_t tid,
				struct ss_buffer *text);

/* The same of a thread that is read several times: if descriptors are left, keeps the file
   open, because opening it takes four times as long as reading it. */
uint64_t ss_task_count_runs(struct ss_tracee *task, const struct ss_target *target,
			    struct ss_buffer *text);

/* Opens stat and syscall of a thread that will be read many times, if many more descriptors are
   left. */
void ss_task_keep_files(const struct ss_target *target, pid_t tid,
			struct ss_kept_thread *ret);

/* Keeps these files for the next capture of a series, or closes them. ret_counters, unless it is
   NULL: outside of a series, those that count how often a thread was scheduled stay open in
   a list of their own, which the caller frees; NULL in a series, or without memory. */
void ss_tasks_close_files(struct ss_task_list *list, const struct ss_target *target,
			  struct ss_kept_files **ret_counters);

/* Whether the stack of task->before is equal to the copy of that of the task. */
bool ss_task_has_same_stack(const struct ss_tracee *task);

/* Reads task->filter unless it is certain. This takes as long as everything else that is
   read of a thread: only for threads that are about to be stopped. */
void ss_task_read_filter(struct ss_tracee *task, const struct ss_target *target,
			 struct ss_buffer *text);

/* Whether a stop would make a seccomp filter decide on its call again. */
bool ss_task_is_untouchable(const struct ss_tracee *task);

/* Sets task->fragile from task->call, with a look at its file and at the filter. */
void ss_task_check_fragile(struct ss_tracee *task, const struct ss_target *target,
			   struct ss_buffer *text);

/* Reads state, name and system call of a thread, applies the filter, and decides whether
   to watch it. */
void ss_task_read(struct ss_tracee *task, const struct ss_target *target,
		  const struct ss_capture_options *options, struct ss_buffer *text);

/* Reads the system call of a thread again that has run since; its state only if that may be another
   one. */
void ss_task_read_again(struct ss_tracee *task, const struct ss_target *target,
			const struct ss_capture_options *options, struct ss_buffer *text);

/* The state of a thread. False: it has ended. */
bool ss_task_read_stat(struct ss_tracee *task, const struct ss_target *target,
		       struct ss_buffer *text, struct ss_stat *ret);

/* The state that task->state has after its stat was read. A thread that is attached and was not
   interrupted is in state t when a signal has stopped it, and counts as T. */
char ss_task_state_of(const struct ss_tracee *task, const struct ss_target *target,
		      const struct ss_stat *stat);

/*
 * Whether a thread has not run since it was captured, so that memory that only it changes is
 * still what it was.
 */

/* For threads that wait for a CPU: some time slices. Other programs may keep all CPUs busy. */
enum { SS_STILL_WAITS = 100 };

/* Everything is borrowed. */
struct ss_still {
	const struct ss_capture *capture;
	const struct ss_target *target;
	const struct ss_process_memory *memory;
	struct ss_buffer *text; /* scratch */
	unsigned *waits_left;	/* of a millisecond, for all threads together */
};

/*
 * A thread that was not stopped: by how often the scheduler has put it on a CPU. A stop
 * changes that number, so a thread that was stopped must be blocked in the same call, with
 * the same bytes on its stack. It is waited for until it is back there.
 */
bool ss_still_check(const struct ss_still *still, const struct ss_capture_thread *thread);

/*
 * System calls that a program could see the stop of its thread in: they return EINTR, or
 * less than they would have transferred, or change memory of the program. A thread in one
 * of them must not be stopped.
 */

/*
 * Whether that is so of a call in which a thread is blocked. Unknown calls are fragile.
 * Reads depend on their file; without look it is not looked at, and they are not fragile.
 * A look takes a few microseconds and never waits for a file system.
 */
bool ss_fragile_blocked(const struct ss_target *target, pid_t tid,
			const struct ss_syscall_text *call, bool look);

/* The same of a call in which a thread runs. Calls that move no data are not fragile. A
   call whose number is not known (negative) is. look: at a socket, too, whose descriptor is duplicated
   for that: until it is closed again, the target cannot free its port. */
bool ss_fragile_running(const struct ss_target *target, pid_t tid,
			const struct ss_syscall_text *call, bool look);

#endif
