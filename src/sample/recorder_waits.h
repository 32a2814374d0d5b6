/*
 * What the threads of a recording wait for: the object, its owner, the other end of a connection. It
 * is looked up once for each wait, when it begins, and recorded with the system call. No thread is
 * stopped. All lookups together take a limited share of the time.
 */
#ifndef SS_SAMPLE_RECORDER_WAITS_H
#define SS_SAMPLE_RECORDER_WAITS_H

#include "base/idtable.h"
#include "data/facts.h"
#include "data/recording_writer.h"
#include "diagnose/wait_table.h"
#include "sample/sampler.h"

/* A thread in a system call, as it was captured. */
struct ss_blocked_thread {
	pid_t tid;
	char state;
	uint64_t run_count; /* while it is the same, the thread is in that call */
	struct ss_syscall call;
	struct ss_regs regs;
};

enum { SS_WAIT_NAME_MAX = 64 };

/*
 * The lookup of a wait.
 *
 *	NONE     -> PENDING  the thread was captured in a call that is known to wait
 *	PENDING  -> DROPPED  it was captured again, and does not wait
 *	         -> NONE     it was looked up
 *	DROPPED  -> PENDING  it waits once more, and has kept its place in the queue
 *	         -> NONE     its turn has come
 */
enum ss_wait_lookup { SS_LOOKUP_NONE, SS_LOOKUP_PENDING, SS_LOOKUP_DROPPED };

/* The wait of one thread. */
struct ss_recorder_wait {
	enum ss_wait_lookup lookup;
	bool musl; /* its C library */
	struct ss_blocked_thread thread;
	char function[SS_WAIT_NAME_MAX]; /* that waits for a lock; "": not known */
};

/* A thread of the recording. */
struct ss_recorder_thread {
	uint32_t handle; /* the writer's */
	uint32_t stack;	 /* likewise; SS_ID_NONE: not captured yet */
	uint32_t call;	 /* likewise, or SS_ID_NONE */
	char state;
	uint64_t counted_ns;	   /* time on a CPU that samples account for */
	uint64_t counted_ready_ns; /* waiting for one, likewise */
	char name[SS_COMM_MAX];
	struct ss_recorder_wait wait;
	/* CLOCK_MONOTONIC; when its stack was first unreadable, or in its current sleep on a stack
	   that the memory map does not have; 0: never */
	uint64_t unread_ns;
	uint64_t unread_count; /* its run count then */
	uint32_t place; /* of its sample among the last ones, + 1; 0: it is not there */
};

/* The time that the lookups of all processes take. Those that find none left are the first ones
   in the next tick. A zeroed struct has spent nothing. */
struct ss_recorder_waits_budget {
	uint64_t begin_ns; /* CLOCK_MONOTONIC of the first lookup; 0: none yet */
	uint64_t spent_ns; /* of CPU time */
	size_t asked;	   /* processes that asked in this tick */
	size_t first;	   /* those before have had their turn */
	bool refused;	   /* a process, in this tick */
};

struct ss_recorder_waits {
	struct ss_wait_table *table;
	struct ss_idtable known;   /* keys of waits without an owner that changes */
	SS_VECTOR(uint32_t) calls; /* the writer's numbers, by key */
	struct ss_buffer key;	   /* scratch */
	SS_VECTOR(pid_t) queue; /* threads whose waits are to be looked up, or dropped */
	uint64_t forgotten_ns;	/* CLOCK_MONOTONIC; when known was emptied */
};

void ss_recorder_waits_deinit(struct ss_recorder_waits *waits);

/* A thread was captured, or its sample has no stack (NULL): notes its wait, if it is in a call that
   is known to wait. function: NULL, not known. False: no memory. */
bool ss_recorder_waits_note(struct ss_recorder_waits *waits,
			    struct ss_recorder_wait *wait,
			    const struct ss_capture_thread *captured,
			    const char *function, bool musl);

/* Begins a tick of all processes. */
void ss_recorder_waits_budget_begin(struct ss_recorder_waits_budget *budget);

/* Whether time is left for lookups of the next process, which asks once in a tick. */
bool ss_recorder_waits_may_look(struct ss_recorder_waits *waits,
				struct ss_recorder_waits_budget *budget, uint64_t now_ns);

/* Looks up what threads wait for whose waits have begun, some in a tick, if time is left. samples: the
   last ones, which get the calls that were found, or NULL. False: no memory. */
bool ss_recorder_waits_look(struct ss_recorder_waits *waits,
			    struct ss_recorder_waits_budget *budget,
			    struct ss_sampler *sampler, struct ss_writer *writer,
			    struct ss_sample_record *samples, uint64_t now_ns);

/* The writer's numbers are not valid any more. */
void ss_recorder_waits_forget(struct ss_recorder_waits *waits);

#endif
