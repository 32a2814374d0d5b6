/*
 * Tasks of asyncio that wait for each other in a cycle: none of them can continue, unless one is
 * cancelled.
 */
#ifndef SS_DIAGNOSE_TASK_CYCLE_H
#define SS_DIAGNOSE_TASK_CYCLE_H

#include "model/snapshot.h"

/* Sets in_cycle and cycle_next of the tasks. False without memory. */
bool ss_task_cycles_find(struct ss_snapshot *snapshot);

#endif
