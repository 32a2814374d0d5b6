/*
 * The traced threads: their names, and the scopes that they are in.
 */
#ifndef SS_TRACE_THREADS_H
#define SS_TRACE_THREADS_H

#include "base/hash.h"
#include "base/vector.h"
#include "process/target.h"

enum { SS_TRACE_COMM = 16 };

struct ss_trace_scope {
	uint32_t probe;
	bool reported; /* its entry was */
	uint64_t sp;   /* at the entry: the same as when it returns */
	uint64_t begin_ns;
	uint64_t inner_ns; /* taken by reported scopes within it */
	uint64_t sequence; /* of its entry */
	uint32_t stack;	   /* likewise */
};

struct ss_trace_thread {
	pid_t pid;
	pid_t tid;
	bool named;
	char name[SS_TRACE_COMM];
	uint64_t entries;			 /* for every */
	SS_VECTOR(struct ss_trace_scope) scopes; /* outermost first */
};

/* Zeroed, it is empty. */
struct ss_trace_threads {
	SS_VECTOR(struct ss_trace_thread) items;
	SS_VECTOR(uint32_t) unused; /* slots of threads that have ended */
	struct ss_hash index;	    /* by tid; also those of unused slots, with tid 0 */
};

void ss_trace_threads_deinit(struct ss_trace_threads *threads);

/* The thread, which is added if it is new. Valid until the next call. NULL: no memory. */
struct ss_trace_thread *ss_trace_threads_get(struct ss_trace_threads *threads, pid_t pid,
					     pid_t tid);
void ss_trace_threads_remove(struct ss_trace_threads *threads,
			     struct ss_trace_thread *thread);

void ss_trace_thread_set_name(struct ss_trace_thread *thread, const char *name);
/* Reads its name, unless it is known. */
void ss_trace_thread_find_name(struct ss_trace_thread *thread,
			       const struct ss_target *target);

#endif
