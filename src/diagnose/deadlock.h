/*
 * The wait-for graph of one process: its cycles are deadlocks, the threads at the ends of
 * its chains are blockers. A deadlock is reported only if all its waits existed at the
 * same time.
 */
#ifndef SS_DIAGNOSE_DEADLOCK_H
#define SS_DIAGNOSE_DEADLOCK_H

#include "data/snapshot.h"

/*
 * Waits for related processes, whose snapshots are in snapshot->others.
 */

/* Sets the chain of each wait, after the threads of all processes were diagnosed. False
   without memory. */
bool ss_chains_find(struct ss_snapshot *snapshot);

/* Sets deadlocks and blockers of a snapshot after its threads were diagnosed. False
   without memory. */
bool ss_deadlock_find(struct ss_snapshot *snapshot);

/*
 * The wait-for graph of several processes, and its proven cycles.
 */

/* Sets cycles, after the threads of all processes were diagnosed. False without
   memory. */
bool ss_process_cycle_find(struct ss_snapshot *snapshot);

/*
 * Tasks of asyncio that wait for each other in a cycle: none of them can continue, unless one is
 * cancelled.
 */

/* Sets in_cycle and cycle_next of the tasks. False without memory. */
bool ss_task_cycles_find(struct ss_snapshot *snapshot);

#endif
