/*
 * The frames of a lock's owner that refer to the lock.
 */
#ifndef SS_DIAGNOSE_OWNER_FRAMES_H
#define SS_DIAGNOSE_OWNER_FRAMES_H

#include "model/snapshot.h"

/* Sets owner_frames of all waits with a known owner in the same process. */
void ss_owner_frames_find(struct ss_snapshot *snapshot);

#endif
