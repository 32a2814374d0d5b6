/*
 * What runs on all CPUs at regular intervals: samples of the CPU clock of
 * perf_event_open(2), each with the user registers of the thread and a copy of its stack,
 * which the kernel takes at that very moment. Nothing is stopped.
 *
 * There is one event for each CPU, not for each thread: the cost does not depend on the
 * number of threads, and new threads are sampled from their first instruction on. It needs
 * CAP_PERFMON (or CAP_SYS_ADMIN), or a perf_event_paranoid of 0 or less. For one thread at
 * a time.
 */
#ifndef SS_PROCESS_CPU_CLOCK_H
#define SS_PROCESS_CPU_CLOCK_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/vector.h"
#include "process/perf_ring.h"

/* A record of the kernel has at most 64 KiB, of which the registers need a part. */
enum { SS_CPU_CLOCK_STACK_MAX = 65024 };

struct ss_clock_sample {
	pid_t pid;
	pid_t tid;
	int cpu;
	uint64_t time_ns;      /* CLOCK_MONOTONIC */
	bool in_kernel;	       /* in a system call, a page fault or an interrupt */
	bool has_regs;	       /* false: it never was in user space */
	ss_kernel_regs kernel; /* in user space, as of when it entered the kernel */
	size_t stack_size;     /* bytes that were copied, from the stack pointer on */
	bool truncated;	       /* the copy has the largest size */
};

struct ss_clock_ring {
	int cpu;
	struct ss_perf_ring ring;
};

/* Zeroed, it is closed. */
struct ss_cpu_clock {
	SS_VECTOR(struct ss_clock_ring) rings;
	size_t stack_max;
	size_t reading; /* index of the ring that is read */
	size_t setting; /* index of the ring that is set next */
	uint64_t lost;	/* samples for which there was no room */
};

/* Prepares to sample all CPUs; copies up to max_stack bytes of each stack. Returns 0 or an
   error number: EACCES, EPERM or ENOSYS if this is not allowed; EMFILE if there are
   too few descriptors. */
int ss_cpu_clock_open(struct ss_cpu_clock *clock, uint64_t period_ns, size_t max_stack);
void ss_cpu_clock_start(const struct ss_cpu_clock *clock);
void ss_cpu_clock_close(struct ss_cpu_clock *clock);

static inline bool ss_cpu_clock_is_open(const struct ss_cpu_clock *clock)
{
	return clock->rings.count > 0;
}

/* The next sample of each CPU comes in that time, and others follow at this interval: so
   the caller can vary the interval. Of more than a few CPUs, some are set at each call. */
void ss_cpu_clock_set(struct ss_cpu_clock *clock, uint64_t interval_ns);

/* The oldest sample of a CPU; the samples of a CPU are returned in their order. False:
   there is none. */
bool ss_cpu_clock_next(struct ss_cpu_clock *clock, struct ss_clock_sample *ret);

/* Copies the stack of the sample that was returned last; size: at most its stack_size. */
bool ss_cpu_clock_copy_stack(const struct ss_cpu_clock *clock, void *ret, size_t size);

/*
 * Where threads were when they last left a CPU: samples that perf_event_open(2) takes of each
 * thread at that moment (the event context-switches), with its user registers and a copy of its
 * stack. So a thread that waits for a CPU has a stack without being stopped: a stop would have to
 * wait for that CPU, too.
 *
 * Each thread has a ring of its own, of which only the newest records are kept; a tick that needs
 * nothing of a thread costs nothing. A sample takes about two microseconds: the caller chooses
 * threads that leave the CPU seldom, and those that do not are dropped. This needs CAP_PERFMON (or
 * CAP_SYS_ADMIN), or a perf_event_paranoid of 1 or less and the right to trace the threads. For
 * one thread at a time.
 */

struct ss_switch_event;

/* Zeroed, it is closed. */
struct ss_switch_stacks {
	SS_VECTOR(struct ss_switch_event) events; /* ascending by tid */
	int first;				  /* descriptor + 1 of an event */
	uint64_t swept_ns;
};

struct ss_switch_sample {
	uint64_t time_ns;      /* CLOCK_MONOTONIC */
	ss_kernel_regs kernel; /* in user space, as of when it entered the kernel */
	size_t stack_size;     /* bytes that were copied, from the stack pointer on */
	bool truncated;	       /* the copy has the largest size */
};

enum { SS_SWITCH_STACK_MAX = 24 << 10 };

/* To be called before the first tick: the kernel prepares itself for the first such event of all
   processes, which takes some milliseconds. Without effect if events are not allowed. */
void ss_switch_stacks_open(struct ss_switch_stacks *stacks);
void ss_switch_stacks_close(struct ss_switch_stacks *stacks);

/* Begins to sample a thread. Again: without effect. Opens files and allocates. False: it is not
   sampled. */
bool ss_switch_stacks_start(struct ss_switch_stacks *stacks, pid_t tid);

/* Whether no other thread can be sampled: there are as many as memory is spent on. */
bool ss_switch_stacks_are_full(const struct ss_switch_stacks *stacks);

/* Ends the samples of a thread that has ended. Without effect if it is not sampled. */
void ss_switch_stacks_end(struct ss_switch_stacks *stacks, pid_t tid);

enum ss_switch_result {
	SS_SWITCH_UNKNOWN,  /* it is not sampled, or gave the CPU up itself */
	SS_SWITCH_NONE_YET, /* it has not left a CPU, or waited for one, since the start */
	SS_SWITCH_LEFT,	    /* it gave the CPU up itself */
	SS_SWITCH_PREEMPTED, /* and has waited for a CPU ever since, or has just got one */
};

/* Where a thread was when it last left a CPU: LEFT or PREEMPTED. now_ns: CLOCK_MONOTONIC. stack: SS_SWITCH_STACK_MAX bytes. */
enum ss_switch_result ss_switch_stacks_find(struct ss_switch_stacks *stacks, pid_t tid,
					    uint64_t now_ns, struct ss_switch_sample *ret,
					    uint8_t *stack);

/* Ends the samples of threads that were not asked for in the last second, that have ended, or that
   leave the CPU too often; once a second, else without effect. */
void ss_switch_stacks_sweep(struct ss_switch_stacks *stacks, uint64_t now_ns);

#endif
