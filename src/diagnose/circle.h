/*
 * Circles of waits through several processes.
 */
#ifndef SS_DIAGNOSE_CIRCLE_H
#define SS_DIAGNOSE_CIRCLE_H

#include "model/snapshot.h"

/* Fills in circles, after all threads of all processes were diagnosed. False without
   memory. */
bool ss_circle_find(struct ss_snapshot *snapshot);

#endif
