/*
 * A process that watches over a recorder. SIGSTOP cannot be blocked: if it stops the
 * recorder in the middle of a tick, the threads that are held at that moment would stand
 * still with it. The guard lets the recorder end its tick, and then stops it again.
 *
 * It looks every SS_STOP_GUARD_MS milliseconds, which bounds how long threads are held.
 */
#ifndef SS_SAMPLE_STOP_GUARD_H
#define SS_SAMPLE_STOP_GUARD_H

#include <stdbool.h>
#include <stdatomic.h>

#include "base/child.h"

enum { SS_STOP_GUARD_MS = 50 };

struct ss_stop_guard {
	atomic_uint *in_tick; /* shared with the guard; NULL: there is no guard */
	struct ss_child child;
};

/* Starts the guard, which ends with the calling thread at the latest. Without a guard
   (no memory, no process) everything else works. */
void ss_stop_guard_start(struct ss_stop_guard *guard);
void ss_stop_guard_end(struct ss_stop_guard *guard);

/* Whether threads may be held from now on. */
void ss_stop_guard_set(struct ss_stop_guard *guard, bool in_tick);

#endif
