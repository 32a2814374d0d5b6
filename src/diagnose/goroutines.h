/*
 * Which goroutines wait for a lock, by the functions on their stacks, and who probably holds it; which
 * of them made no progress. Go does not record who holds a lock.
 */
#ifndef SS_DIAGNOSE_GOROUTINES_H
#define SS_DIAGNOSE_GOROUTINES_H

#include "data/snapshot.h"
#include "diagnose/wait_table.h"

/* Sets lock_function, holder and endless of goroutines. False without memory. */
bool ss_goroutine_locks_find(struct ss_snapshot *snapshot,
			     const struct ss_wait_table *table);

#endif
