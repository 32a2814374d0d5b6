/*
 * The threads of a target as the capture sees them: what procfs says before the
 * freeze, and what becomes of each in it.
 */
#ifndef SS_CAPTURE_TASKS_H
#define SS_CAPTURE_TASKS_H

#include "arch/arch.h"
#include "base/vector.h"
#include "target/target.h"
#include "model/capture.h"

enum ss_task_phase {
	SS_TASK_SEEN,	     /* listed, not attached */
	SS_TASK_SEIZED,	     /* ours, and running on */
	SS_TASK_INTERRUPTED, /* told to stop, not yet stopped */
	SS_TASK_STOPPED,
	SS_TASK_RELEASED,
	SS_TASK_GONE,	/* ended, or its process has begun another program */
	SS_TASK_ZOMBIE, /* the leader has ended, other threads live */
	SS_TASK_WORKER, /* the kernel's own, for io_uring or vhost: without a stack here */
	SS_TASK_REFUSED,  /* SEIZE was refused: traced, or just ending */
	SS_TASK_DENIED,	  /* nothing of it may be looked at but its state */
	SS_TASK_UNWANTED, /* the filter does not want it */
};

struct ss_task {
	pid_t tid;
	enum ss_task_phase phase;
	bool runs;     /* on a CPU or ready, as far as is known */
	bool slow;     /* in D: do not wait for it */
	bool attached; /* to this thread of ours; if it has ended, its end is ours to see,
			    and its parent's only when this thread ends, too */
	bool disturbs; /* it wakes up on the CPU of a running thread */
	int signal;    /* that its stop intercepted; to be handed on */
	int seize_errno; /* of a refusal */
	int processor;	 /* CPU it last ran on */
	char state;
	char comm[SS_COMM_MAX];
	struct ss_syscall_text call; /* before the freeze */
	uint64_t run_count; /* just before call: how often it was put on a CPU; 0: not
			       known */
	bool fragile;	    /* in a call that a stop would end */
	bool watched;	    /* blocked, and to be read as it lies there, without a stop */
	bool steady; /* watched, and did not run from before the freeze to after it */
	uint64_t running_ns;   /* CLOCK_MONOTONIC; when it last did not stand still yet */
	uint64_t stopped_ns;   /* how long it stood still, at most */
	ss_kernel_regs kernel; /* as the stop found them */
	bool partial;	       /* never stopped: call is what is known */
	bool consistent;
	const char *reason; /* why there is less than a whole stack, or NULL */
	const char *wchan;  /* in the capture's strings, or NULL; likewise */
	const char *kernel_stack;
	struct ss_stack_copy stacks[SS_STACK_COPIES];
	struct ss_lock_copy lock;   /* its moment is set before it is copied */
	uint64_t area_end;	    /* of the area that sp is in */
	struct ss_live_frame *live; /* LIVE */
	size_t live_count;
	enum ss_end live_end;
};

struct ss_task_list {
	SS_VECTOR(struct ss_task) items;
	pid_t *sorted;	     /* the tids in items, ascending */
	size_t sorted_count; /* may lag behind items.count within a pass */
	size_t sorted_capacity;
	char *directory; /* buffer for getdents64 */
	unsigned unseen; /* threads for which there was no room during a freeze */
	/* Of threads that another tracer holds: that, and that and how they were read.
	   Empty while no other tracer is known. */
	char traced[160];
	char traced_read[192];
};

/* Room for count threads beforehand: within a freeze nothing may be allocated. */
bool ss_tasks_reserve(struct ss_task_list *list, size_t count);
void ss_tasks_deinit(struct ss_task_list *list);

/* How many threads the kernel counts in the process; 0 if it has ended. */
size_t ss_tasks_count_now(const struct ss_target *target);

/* Appends the threads that are not in the list yet (only tid and phase SEEN are
   set). It never allocates: what finds no room is counted in unseen. The number
   appended. */
size_t ss_tasks_scan(struct ss_task_list *list, const struct ss_target *target);

/* How often the thread was put on a CPU: third figure of schedstat (sched-stats.rst).
   0: not known. */
uint64_t ss_task_read_run_count(const struct ss_target *target, pid_t tid,
				struct ss_text *text);

/* Reads state, name and system call of a thread; asks the filter, and says whether it
   is to be watched. */
void ss_task_read(struct ss_task *task, const struct ss_target *target,
		  const struct ss_capture_options *options, struct ss_text *text);

#endif
