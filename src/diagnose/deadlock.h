/*
 * The wait-for graph of one process: its cycles are deadlocks, the threads at the ends of
 * its chains are blockers. A deadlock is reported only if all its waits existed at the
 * same time.
 */
#ifndef SS_DIAGNOSE_DEADLOCK_H
#define SS_DIAGNOSE_DEADLOCK_H

#include "model/snapshot.h"

/* Sets deadlocks and blockers of a snapshot after its threads were diagnosed. False
   without memory. */
bool ss_deadlock_find(struct ss_snapshot *snapshot);

#endif
