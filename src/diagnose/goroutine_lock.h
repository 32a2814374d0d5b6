/*
 * Which goroutines wait for a lock, by the functions on their stacks.
 */
#ifndef SS_DIAGNOSE_GOROUTINE_LOCK_H
#define SS_DIAGNOSE_GOROUTINE_LOCK_H

#include "diagnose/wait_table.h"
#include "model/snapshot.h"

/* Sets lock_function of goroutines. False without memory. */
bool ss_goroutine_locks_find(struct ss_snapshot *snapshot,
			     const struct ss_wait_table *table);

#endif
