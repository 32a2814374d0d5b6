/*
 * Leader and followers: the threads of a pool take turns in waiting for the next
 * connection or job. The leader waits for it and holds a lock; the followers wait for that
 * lock. All of them are idle.
 */
#ifndef SS_DIAGNOSE_LEADER_H
#define SS_DIAGNOSE_LEADER_H

#include "model/snapshot.h"

/* Whether the thread waits for a lock whose holder waits for work, in the same function. If
   the lock does not record its owner, one of the other threads may be the holder. */
bool ss_leader_exists(const struct ss_snapshot *snapshot,
		      const struct ss_thread *follower);

#endif
