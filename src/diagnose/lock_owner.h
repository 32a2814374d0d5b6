/*
 * Who holds a lock: the thread that the lock names, if it is to be believed.
 */
#ifndef SS_DIAGNOSE_LOCK_OWNER_H
#define SS_DIAGNOSE_LOCK_OWNER_H

#include "diagnose/lock_layout.h"

/* The thread that holds the lock for which thread waits, or NULL and in *why the reason
   (in the snapshot's strings, or constant; NULL: such a lock has no owner). */
const struct ss_thread *
ss_lock_owner_find(struct ss_snapshot *snapshot, const struct ss_thread *thread,
		   const struct ss_futex *futex, const struct ss_lock_sign *sign,
		   const struct ss_lock_words *lock, const char **why);

#endif
