/*
 * Who waits for whom: circles of threads, and the threads at the ends of chains.
 */
#ifndef SS_DIAGNOSE_DEADLOCK_H
#define SS_DIAGNOSE_DEADLOCK_H

#include "model/snapshot.h"

/* Fills in deadlocks and blockers of a snapshot whose waits are known. False without
   memory. */
bool ss_deadlock_find(struct ss_snapshot *snapshot);

#endif
