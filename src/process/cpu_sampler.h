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

#include <stdint.h>
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

/*
 * Whether threads compute: samples of them in user space, by the task clock of
 * perf_event_open(2). Where the kernel tells neither registers nor system call of a running
 * thread, this still shows that it is not in a system call. Nothing is stopped and no system
 * call is interrupted.
 *
 * This needs the right to trace the thread, and a perf_event_paranoid of 2 or less. It is for
 * one thread at a time.
 */

enum { SS_USER_PERIOD_NS = 50 * 1000 };

struct ss_user_event;

/* Zeroed, it is empty. */
struct ss_user_sampler {
	SS_VECTOR(struct ss_user_event) events; /* one for each thread that was started */
	bool refused;
};

/* Begins to sample a thread, each SS_USER_PERIOD_NS that it runs. Again: without effect.
   False: this is not allowed, or there are too many. Opens files and allocates. */
bool ss_user_sampler_start(struct ss_user_sampler *sampler, pid_t tid);

/* Waits for a sample, at most this long. */
void ss_user_sampler_wait(const struct ss_user_sampler *sampler, uint64_t limit_ns);

/* When the thread was last seen to compute: in user space at so many samples in succession,
   and for a good part of the time that it ran since the start. CLOCK_MONOTONIC; 0: never. */
uint64_t ss_user_sampler_seen(const struct ss_user_sampler *sampler, pid_t tid,
			      unsigned in_succession);

/* How long the thread has run since the start; 0: unknown. */
uint64_t ss_user_sampler_ran_ns(const struct ss_user_sampler *sampler, pid_t tid);

/* Ends all samples. */
void ss_user_sampler_deinit(struct ss_user_sampler *sampler);

#endif
