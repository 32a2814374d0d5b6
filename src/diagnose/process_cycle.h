/*
 * The wait-for graph of several processes, and its proven cycles.
 */
#ifndef SS_DIAGNOSE_PROCESS_CYCLE_H
#define SS_DIAGNOSE_PROCESS_CYCLE_H

#include "model/snapshot.h"

/* Sets cycles, after the threads of all processes were diagnosed. False without
   memory. */
bool ss_process_cycle_find(struct ss_snapshot *snapshot);

#endif
