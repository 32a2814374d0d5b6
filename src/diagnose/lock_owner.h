/*
 * The owner of a lock: the thread that the lock names, if that can be trusted.
 */
#ifndef SS_DIAGNOSE_LOCK_OWNER_H
#define SS_DIAGNOSE_LOCK_OWNER_H

#include "diagnose/diagnosis.h"
#include "diagnose/lock.h"

/* Sets the owner of the wait, or the reason why it is unknown. */
void ss_lock_owner_fill(struct ss_diagnosis *d, const struct ss_futex *futex,
			const struct ss_wait_function *function,
			const struct ss_lock_state *lock);

#endif
