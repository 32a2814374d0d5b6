/*
 * What functions on the stacks say about waits, according to a table; and the locks of
 * applications that threads wait for.
 */
#ifndef SS_DIAGNOSE_PURPOSE_H
#define SS_DIAGNOSE_PURPOSE_H

#include "diagnose/wait_function.h"
#include "data/snapshot.h"
#include "diagnose/wait_table.h"

/*
 * Frames counted from the outermost one: what two stacks have in common.
 */

/* Whether two frames are of the same function; without symbols, whether they have the
   same pc. */
bool ss_frame_is_same_function(const struct ss_frame *a, const struct ss_frame *b);

/* The frame with that number, counted from the outermost one, which is 0. */
const struct ss_frame *ss_outer_frame(const struct ss_snapshot *snapshot,
				      const struct ss_task *thread, size_t from_outside);

/* The number of outermost frames of two threads with the same functions. */
size_t ss_outer_frames_common(const struct ss_snapshot *a, const struct ss_task *x,
			      const struct ss_snapshot *b, const struct ss_task *y);

/*
 * The frames of a lock's owner that refer to the lock.
 */

/* Sets owner_frames of all waits with a known owner in the same process. */
void ss_owner_frames_find(struct ss_snapshot *snapshot);

/* Sets the purpose of the waits of a diagnosed snapshot. False without memory. */
bool ss_purposes_find(struct ss_snapshot *snapshot, const struct ss_wait_table *table);

/* Sets the application locks of a snapshot whose waits have a purpose. False without
   memory. */
bool ss_application_locks_find(struct ss_snapshot *snapshot);

#endif
