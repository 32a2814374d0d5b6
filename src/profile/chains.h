/*
 * Wait chains and deadlocks in a profile: each thread waits for the owner of a lock, which
 * may wait itself. A recording may contain any graph, even an impossible one.
 */
#ifndef SS_PROFILE_CHAINS_H
#define SS_PROFILE_CHAINS_H

#include "profile/profile.h"

/* The wait of one thread. Indexes may be SS_ID_NONE. */
struct ss_chain {
	uint32_t edge;	 /* its wait: the first of its edges */
	uint32_t next;	 /* the thread that it waits for */
	uint32_t cycle;	 /* the deadlock that its chain ends in: its first member */
	bool member;	 /* of this deadlock */
	bool unproven;	 /* of a first member: this cycle is no deadlock */
	uint32_t size;	 /* of a first member: how many members there are */
	uint32_t behind; /* of a first member: how many other threads wait for them */
};

/*
 * Returns one chain for each thread, to be freed with free(); NULL without memory. A
 * deadlock is a cycle all of whose edges are marked as part of one: a cycle alone
 * proves nothing, since its threads may have been observed at different times.
 */
struct ss_chain *ss_chains_new(const struct ss_profile *profile);

#endif
