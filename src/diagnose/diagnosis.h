/*
 * The diagnosis of one thread in progress: its captured facts, and the wait to fill in.
 * Diagnosis never accesses the process.
 */
#ifndef SS_DIAGNOSE_DIAGNOSIS_H
#define SS_DIAGNOSE_DIAGNOSIS_H

#include "model/snapshot.h"

struct ss_diagnosis {
	struct ss_snapshot *snapshot;
	const struct ss_thread *thread;
	const struct ss_thread_facts *facts; /* of the thread; never NULL */
	struct ss_wait *wait; /* initially of kind OTHER, with fd -1 and so on */
	bool failed;	      /* out of memory */
};

/* Memory for count elements, zeroed, that lives as long as the snapshot. Without
   memory, returns NULL and sets failed. */
void *ss_diagnosis_alloc(struct ss_diagnosis *d, size_t count, size_t size);

#endif
