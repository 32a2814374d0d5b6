/*
 * What perf_event_open(2) tells without stopping a thread: samples of CPUs and of threads, and the hits
 * of uprobes. All of this is for one thread at a time.
 */
#ifndef SS_PROCESS_PERF_H
#define SS_PROCESS_PERF_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/hash.h"
#include "base/vector.h"
#include "process/target.h"

/*
 * An event on one CPU or thread, and the ring into which the kernel writes its records.
 */

struct ss_perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t size;   /* of the data, a power of two */
	uint64_t next; /* position of the record that ss_perf_ring_next() returns */
};

/*
 * Opens an event on a CPU, for all processes, with a ring of that size (a power of two
 * times the page size; half of it, and so on, down to size_min, where the kernel does not
 * lock so much memory). attr is completed with what all events have in common. Returns 0
 * or an error number: ENODEV if the CPU is offline; EACCES, EPERM or ENOSYS if this is not
 * allowed.
 */
int ss_perf_ring_open(struct ss_perf_ring *ring, struct perf_event_attr *attr, int cpu,
		      size_t size, size_t size_min);
/* The same for one thread, on any CPU; ESRCH if it has ended. */
int ss_perf_ring_open_thread(struct ss_perf_ring *ring, struct perf_event_attr *attr,
			     pid_t tid, size_t size);
/* The same, with a ring that keeps the newest records, each before those that are older: only the
   following two functions read it. */
int ss_perf_ring_open_newest(struct ss_perf_ring *ring, struct perf_event_attr *attr,
			     pid_t tid, size_t size);
void ss_perf_ring_close(struct ss_perf_ring *ring);

/* Where the newest record begins; the first one ends at 0. */
uint64_t ss_perf_ring_head(const struct ss_perf_ring *ring);

/* Copies bytes from a position, at most the size of the ring. */
void ss_perf_ring_peek(const struct ss_perf_ring *ring, uint64_t at, void *ret,
		       size_t size);

/* The header of the oldest record. False: there is none. The record stays in the ring
   until ss_perf_ring_drop(). */
bool ss_perf_ring_next(struct ss_perf_ring *ring, struct perf_event_header *ret);

/* Copies bytes of that record, from an offset on. False: it is not that large. */
bool ss_perf_ring_copy(const struct ss_perf_ring *ring, size_t offset, void *ret,
		       size_t size);
void ss_perf_ring_drop(struct ss_perf_ring *ring);

/*
 * What runs on a CPU: samples of the threads that run there, with their user registers,
 * by the CPU clock of perf_event_open(2). No system call is interrupted; a sample
 * takes a CPU about a microsecond.
 *
 * This needs CAP_PERFMON (or CAP_SYS_ADMIN), or a perf_event_paranoid of 0 or less.
 */

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
 * thread, this still shows that it is not in a system call. No system call is interrupted.
 *
 * This needs the right to trace the thread, and a perf_event_paranoid of 2 or less.
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

/*
 * What runs on all CPUs at regular intervals: samples of the CPU clock of
 * perf_event_open(2), each with the user registers of the thread and a copy of its stack,
 * which the kernel takes at that very moment.
 *
 * There is one event for each CPU, not for each thread: the cost does not depend on the
 * number of threads, and new threads are sampled from their first instruction on. It needs
 * CAP_PERFMON (or CAP_SYS_ADMIN), or a perf_event_paranoid of 0 or less.
 */

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
 * CAP_SYS_ADMIN), or a perf_event_paranoid of 1 or less and the right to trace the threads.
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

/*
 * Uprobes: the kernel puts breakpoints into the code of chosen processes, and writes a record
 * for each hit into a ring for each CPU. It restores the code when the events are closed, also if
 * this program is killed.
 *
 * The probes are defined in tracefs (Documentation/trace/uprobetracer.rst), as one event with
 * many places, so that one event is opened for each thread and CPU. Threads and processes that
 * these start inherit it. The other interface, the PMU "uprobe", must not be inherited: in
 * Linux 6.18 and before the kernel checks the rights of the process that starts a thread, and
 * clone(2) fails in the target.
 *
 * A definition outlives a program that is killed; it does nothing then, and the next
 * ss_uprobes_init() removes it.
 */

/* A record has at most 64 KiB. */
enum { SS_UPROBE_STACK_MAX = 32 << 10, SS_UPROBE_COMM = 16 };

struct ss_uprobe_options {
	uint64_t every; /* record each n-th hit; 0: all */
	/* Hits are page faults that need no input, in place 0, with the address as argument;
	   there are no probes, and tracefs is not needed. */
	bool faults;
	unsigned args;	  /* registers of arguments, at most SS_PROBE_ARGS */
	bool callers;	  /* the return address, as it is at the entry of a function */
	bool regs;	  /* all registers, */
	size_t stack_max; /* and that many bytes of the stack; 0: none */
};

enum ss_uprobe_record {
	SS_UPROBE_HIT = 1,
	SS_UPROBE_NAME, /* a thread got a name; exec: by execve() */
	SS_UPROBE_FORK, /* a thread was started: tid of pid, by parent_tid of parent_pid */
	SS_UPROBE_EXIT,
	SS_UPROBE_MAP, /* with regs or callers: executable code of a file was mapped */
};

struct ss_uprobe_hit {
	enum ss_uprobe_record kind;
	pid_t pid;
	pid_t tid;
	pid_t parent_pid; /* FORK */
	pid_t parent_tid;
	uint64_t time_ns;	   /* CLOCK_MONOTONIC */
	bool exec;		   /* NAME */
	char name[SS_UPROBE_COMM]; /* NAME */
	/* HIT */
	uint32_t place; /* of ss_uprobes_add() */
	uint64_t sp;
	uint64_t args[SS_PROBE_ARGS];
	uint64_t pc;		 /* with callers */
	uint64_t return_address; /* likewise */
	bool has_regs;		 /* regs of the probes: they are its own */
	size_t stack_size;
	bool truncated; /* the copy of the stack has the largest size */
	void *data;	/* the caller's */
};

struct ss_uprobe_event {
	int fd;
	pid_t tid;
	uint64_t id;
};

/* Zeroed, it is closed. */
struct ss_uprobes {
	struct ss_uprobe_options options;
	int tracefs; /* its directory */
	char group[32];
	uint64_t config; /* of the event */
	size_t places;
	SS_VECTOR(struct ss_perf_ring) rings; /* of CPUs that are online */
	SS_VECTOR(int) cpus;		      /* of the rings */
	SS_VECTOR(struct ss_uprobe_event) events;
	SS_VECTOR(pid_t) late; /* threads that were started while events were opened */
	size_t reading;	       /* index of the ring that is read */
	ss_kernel_regs regs;   /* of the hit that was returned last, if it has_regs */
	uint64_t stack_offset; /* of the size of the stack in that record */
	uint64_t lost;	       /* hits without room in a ring */
	uint64_t duplicates;
};

/* Errors: DENIED, UNSUPPORTED (this kernel has no uprobes, or tracefs is not mounted). */
struct ss_error *ss_uprobes_init(struct ss_uprobes *uprobes,
				 const struct ss_uprobe_options *options);
void ss_uprobes_deinit(struct ss_uprobes *uprobes);

/* Whether events may be opened at all. Errors: DENIED, UNSUPPORTED, SYSTEM. */
struct ss_error *ss_uprobes_check(void);

/* Defines a place: an offset of the file fd. counter: the offset of a counter that the kernel
   increments while the probe is there; 0: none. Places have the numbers 0, 1, and so on.
   Errors: SYSTEM (the kernel refuses it). */
struct ss_error *ss_uprobes_add(struct ss_uprobes *uprobes, int fd, uint64_t offset,
				uint64_t counter);

/* Opens the events of all threads of a process, without starting them. Errors: DENIED,
   SYSTEM, NO_PROCESS, NO_MEMORY. */
struct ss_error *ss_uprobes_attach(struct ss_uprobes *uprobes,
				   const struct ss_target *target);
void ss_uprobes_start(const struct ss_uprobes *uprobes);
void ss_uprobes_stop(const struct ss_uprobes *uprobes);

/* The next record of a ring, in the order of that ring, then those of the next one. False:
   there is none, in any of them. */
bool ss_uprobes_next(struct ss_uprobes *uprobes, struct ss_uprobe_hit *ret);

/* The registers of the hit that was returned last, if it has_regs. */
void ss_uprobes_regs(const struct ss_uprobes *uprobes, struct ss_regs *ret);

/* Copies the stack of the hit that was returned last; size: at most its stack_size. */
bool ss_uprobes_copy_stack(const struct ss_uprobes *uprobes, void *ret, size_t size);

/* How often the probes were hit in all, also those hits that were not recorded. */
uint64_t ss_uprobes_count(const struct ss_uprobes *uprobes);

/* How many events one thread needs. */
size_t ss_uprobes_cpus(const struct ss_uprobes *uprobes);

#endif
