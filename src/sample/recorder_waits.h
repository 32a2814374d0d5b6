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

/*
 * What blocked threads of a sampled process wait for: reads the objects that their system calls
 * refer to. No thread is stopped.
 */

/* Limit of threads at once. */
enum { SS_WAIT_FACTS_MAX = 32 };

/* A thread in a system call, as it was captured. */
struct ss_blocked_thread {
	pid_t tid;
	char state;
	uint64_t run_count; /* while it is the same, the thread is in that call */
	struct ss_syscall call;
	struct ss_regs regs;
};

/*
 * Reads the memory, descriptors and locks that the calls of these threads refer to. They are in
 * ascending order. NULL: no memory. The caller frees the facts.
 */
struct ss_facts *ss_wait_facts_read(struct ss_sampler *sampler,
				    const struct ss_blocked_thread *threads,
				    size_t count);

/* Whether a thread has not run since. */
bool ss_wait_facts_are_of(struct ss_sampler *sampler,
			  const struct ss_blocked_thread *thread);

/* Reads memory that a call refers to, of pages that are in memory. False: not all of it. */
bool ss_wait_facts_read_memory(const struct ss_sampler *sampler, uint64_t address,
			       void *ret, size_t size);

/* The link of a descriptor, such as "socket:[4711]". False: it is not open. */
bool ss_wait_facts_read_link(const struct ss_sampler *sampler, int fd, char *ret,
			     size_t size);

/* The id of a thread in its innermost pid namespace; 0: not known. */
pid_t ss_wait_facts_inner_tid(struct ss_sampler *sampler, pid_t tid);

enum { SS_WAIT_NAME_MAX = 64 };

/* The wait of one thread. */
struct ss_recorder_wait {
	bool pending; /* to be looked up */
	bool musl;    /* its C library */
	struct ss_blocked_thread thread;
	char function[SS_WAIT_NAME_MAX]; /* that waits for a lock; "": not known */
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
	uint64_t forgotten_ns;	   /* CLOCK_MONOTONIC; when known was emptied */
};

void ss_recorder_waits_deinit(struct ss_recorder_waits *waits);

/* A thread was captured: notes its wait, if it is in a call that is known to wait.
   function: NULL, not known. */
void ss_recorder_wait_begin(struct ss_recorder_wait *wait,
			    const struct ss_capture_thread *captured,
			    const char *function, bool musl);

/* A lookup that is to be done: the wait, and where the number of its call is stored. */
struct ss_recorder_lookup {
	struct ss_recorder_wait *wait;
	uint32_t *call;
};

/* Finds a thread of the process; inner: tid is that in its own pid namespace. name is valid until
   the next tick. False: there is no such thread. */
typedef bool ss_recorder_thread_finder(void *data, pid_t tid, bool inner,
				       struct ss_task *ret);

struct ss_recorder_waits_context {
	struct ss_sampler *sampler;
	struct ss_writer *writer;
	pid_t inner_pid;
	ss_recorder_thread_finder *find;
	void *data;
};

/* Begins a tick of all processes. */
void ss_recorder_waits_budget_begin(struct ss_recorder_waits_budget *budget);

/* Whether time is left for lookups of the next process, which asks once in a tick. */
bool ss_recorder_waits_may_look(struct ss_recorder_waits *waits,
				struct ss_recorder_waits_budget *budget, uint64_t now_ns);

/* Looks up at most SS_WAIT_FACTS_MAX waits, ascending by thread id. False: no memory. */
bool ss_recorder_waits_look(struct ss_recorder_waits *waits,
			    const struct ss_recorder_waits_context *context,
			    const struct ss_recorder_lookup *lookups, size_t count);

/* Whether the wait is known: then *call is set. */
bool ss_recorder_waits_find(struct ss_recorder_waits *waits, struct ss_sampler *sampler,
			    const struct ss_recorder_wait *wait, uint32_t *call);

/* The writer's numbers are not valid any more. */
void ss_recorder_waits_forget(struct ss_recorder_waits *waits);

#endif
