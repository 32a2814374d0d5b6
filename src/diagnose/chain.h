/*
 * Waits for related processes, whose snapshots are in snapshot->others.
 */
#ifndef SS_DIAGNOSE_CHAIN_H
#define SS_DIAGNOSE_CHAIN_H

#include "model/snapshot.h"

/* The target of a wait. */
struct ss_chain_link {
	const struct ss_snapshot *snapshot; /* NULL: not known */
	const struct ss_thread *thread;	    /* NULL: any thread of that process */
	bool ambiguous;			    /* others may end the wait as well */
};

/* Returns the target of a thread's wait, in its own process or a related one. */
struct ss_chain_link ss_chain_follow(const struct ss_snapshot *snapshot,
				     const struct ss_thread *thread);

/* Sets the chain of each wait, after the threads of all processes were diagnosed. False
   without memory. */
bool ss_chains_find(struct ss_snapshot *snapshot);

#endif
