/*
 * The diagnosis of one thread in progress: its captured facts, and the wait to fill in.
 * Diagnosis never accesses the process.
 */
#ifndef SS_DIAGNOSE_DIAGNOSE_H
#define SS_DIAGNOSE_DIAGNOSE_H

#include "data/call.h"
#include "data/futex.h"
#include "data/snapshot.h"

struct ss_diagnosis {
	struct ss_snapshot *snapshot;
	const struct ss_task *thread;
	const struct ss_thread_facts *facts; /* of the thread; never NULL */
	struct ss_wait *wait; /* initially of kind OTHER, with fd -1 and so on */
	bool failed;	      /* out of memory */
};

/*
 * The time limits of system calls.
 */

/* Sets timed, timeout_ns and left_ns of the wait if known. */
void ss_time_limit_read(struct ss_diagnosis *d, const struct ss_call *call);
void ss_time_limit_read_futex(struct ss_diagnosis *d, const struct ss_futex *futex);

/*
 * File descriptors in snapshots.
 */

/* Converts a process of the facts to one of a snapshot. */
struct ss_related_process ss_related_process(const struct ss_facts *facts,
					     const struct ss_process_fact *process);

#endif
