/*
 * What a capture knows about the waiting of threads, beside their stacks: system calls,
 * what their arguments point to, what their file descriptors are. Filled by the
 * privileged rooms, read by diagnose/. Reference-counted, and immutable once a capture
 * holds it: the snapshot keeps it when the capture is gone.
 */
#ifndef SS_MODEL_FACTS_H
#define SS_MODEL_FACTS_H

#include <stdatomic.h>

#include "arch/arch.h"
#include "base/intern.h"
#include "base/vector.h"
#include "stacksnap.h"

/* Bytes of target memory. */
struct ss_memory_fact {
	uint64_t address;
	size_t size;	      /* 0: none could be read */
	const uint8_t *bytes; /* kept by the facts */
};

struct ss_thread_facts {
	pid_t tid;
	char state;
	struct ss_syscall call; /* number -1: none, or not known */
	bool stayed; /* it was still in that call when its objects were looked at */
	struct ss_memory_fact memory[SS_SYSCALL_ARGS]; /* to which that argument points */
	struct ss_memory_fact lock; /* around the futex that it is blocked on */
	unsigned moment;	    /* see struct ss_lock_copy */
};

struct ss_facts {
	atomic_uint references;
	struct ss_intern *strings;		   /* what the facts point to */
	SS_VECTOR(void *) blocks;		   /* bytes that are kept; owned */
	SS_VECTOR(struct ss_thread_facts) threads; /* ascending by tid */
};

/* Empty facts with one reference. NULL without memory. */
struct ss_facts *ss_facts_new(void);
/* NULL is fine for both. */
struct ss_facts *ss_facts_ref(struct ss_facts *facts);
void ss_facts_unref(struct ss_facts *facts);

/* Memory of that size, zeroed, that lives as long as the facts. NULL without memory. */
void *ss_facts_keep(struct ss_facts *facts, size_t size);

/* What is known of a thread, or NULL. facts may be NULL. */
const struct ss_thread_facts *ss_facts_find_thread(const struct ss_facts *facts,
						   pid_t tid);

SS_DEFINE_CLEANUP(struct ss_facts, ss_facts, ss_facts_unref)

#endif
