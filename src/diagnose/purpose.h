/*
 * What functions on the stacks say about waits, according to a table; and the locks of
 * applications that threads wait for.
 */
#ifndef SS_DIAGNOSE_PURPOSE_H
#define SS_DIAGNOSE_PURPOSE_H

#include "diagnose/wait_table.h"
#include "model/snapshot.h"

/* Sets the purpose of the waits of a diagnosed snapshot. False without memory. */
bool ss_purposes_find(struct ss_snapshot *snapshot, const struct ss_wait_table *table);

/* Sets the application locks of a snapshot whose waits have a purpose. False without
   memory. */
bool ss_application_locks_find(struct ss_snapshot *snapshot);

#endif
