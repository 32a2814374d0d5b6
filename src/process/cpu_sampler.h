/*
 * What runs on a CPU: samples of the threads that run there, with their user registers,
 * by the CPU clock of perf_event_open(2). Nothing is stopped and no system call is
 * interrupted; a sample takes a CPU about a microsecond.
 *
 * This needs CAP_PERFMON (or CAP_SYS_ADMIN), or a perf_event_paranoid of 0 or less. It is
 * for one thread at a time.
 */
#ifndef SS_PROCESS_CPU_SAMPLER_H
#define SS_PROCESS_CPU_SAMPLER_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/vector.h"

enum { SS_CPU_PERIOD_NS = 50 * 1000 };

struct ss_cpu_sample {
	pid_t tid;
	uint64_t time_ns;      /* CLOCK_MONOTONIC */
	bool in_kernel;	       /* in a system call, a page fault or an interrupt */
	ss_kernel_regs kernel; /* in user space, as of when it entered the kernel */
};

struct ss_cpu_event;

/* Zeroed, it is empty. */
struct ss_cpu_sampler {
	SS_VECTOR(struct ss_cpu_event) events; /* one for each CPU that was started */
	bool refused;
};

/* Takes that many samples of a CPU, one each SS_CPU_PERIOD_NS; none while it is idle.
   False: this is not allowed. Opens files and allocates when a CPU is new. */
bool ss_cpu_sampler_start(struct ss_cpu_sampler *sampler, int cpu, unsigned samples);

/* Waits for a sample, at most this long. */
void ss_cpu_sampler_wait(const struct ss_cpu_sampler *sampler, uint64_t limit_ns);

/* Removes the oldest sample of a CPU. False: there is none. */
bool ss_cpu_sampler_next(struct ss_cpu_sampler *sampler, struct ss_cpu_sample *ret);

void ss_cpu_sampler_deinit(struct ss_cpu_sampler *sampler);

#endif
