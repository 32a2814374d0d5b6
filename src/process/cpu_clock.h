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

#endif
