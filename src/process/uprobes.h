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
 * ss_uprobes_init() removes it. For one thread at a time.
 */
#ifndef SS_PROCESS_UPROBES_H
#define SS_PROCESS_UPROBES_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/hash.h"
#include "base/vector.h"
#include "process/perf_ring.h"
#include "process/target.h"

/* A record has at most 64 KiB. */
enum { SS_UPROBE_STACK_MAX = 32 << 10, SS_UPROBE_COMM = 16 };

struct ss_uprobe_options {
	uint64_t every; /* record each n-th hit; 0: all */
	/* Hits are page faults that need no input, in place 0, with the address as argument;
	   there are no probes, and tracefs is not needed. */
	bool faults;
	unsigned args;	  /* registers of arguments, at most SS_PROBE_ARGS */
	bool regs;	  /* all registers, */
	size_t stack_max; /* and that many bytes of the stack; 0: none */
};

enum ss_uprobe_record {
	SS_UPROBE_HIT = 1,
	SS_UPROBE_NAME, /* a thread got a name; exec: by execve() */
	SS_UPROBE_FORK, /* a thread was started: tid of pid, by parent_tid of parent_pid */
	SS_UPROBE_EXIT,
	SS_UPROBE_MAP, /* with regs: executable code of a file was mapped */
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
	bool has_regs; /* regs of the probes: they are its own */
	size_t stack_size;
	bool truncated; /* the copy of the stack has the largest size */
	void *data;	/* the caller's */
};

struct ss_uprobe_event {
	int fd;
	int cpu;
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
