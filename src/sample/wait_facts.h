/*
 * What blocked threads of a sampled process wait for: reads the objects that their system calls
 * refer to. No thread is stopped.
 */
#ifndef SS_SAMPLE_WAIT_FACTS_H
#define SS_SAMPLE_WAIT_FACTS_H

#include "data/facts.h"
#include "sample/sampler.h"

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

#endif
