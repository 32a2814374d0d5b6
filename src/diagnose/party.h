/*
 * What becomes of waits in other processes: circles through several of them, and what
 * those do for which threads wait. Snapshots of them lie in snapshot->others.
 */
#ifndef SS_DIAGNOSE_PARTY_H
#define SS_DIAGNOSE_PARTY_H

#include "model/snapshot.h"

/* Where a wait leads to. */
struct ss_destination {
	const struct ss_snapshot *snapshot; /* NULL: it is not known */
	const struct ss_thread *thread;	    /* NULL: any thread of that process */
	bool unsure;			    /* others may end the wait as well */
};

/* The thread for which this one of that snapshot waits, in its process or another. */
struct ss_destination ss_party_follow(const struct ss_snapshot *snapshot,
				      const struct ss_thread *thread);

/* After all threads of all of them were diagnosed. False without memory. */
bool ss_party_describe(struct ss_snapshot *snapshot);

#endif
