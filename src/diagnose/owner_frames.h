/*
 * The frames of a lock's owner that refer to the lock.
 */
#ifndef SS_DIAGNOSE_OWNER_FRAMES_H
#define SS_DIAGNOSE_OWNER_FRAMES_H

#include "model/snapshot.h"

/* Fills in owner_frames of all waits of which the owner is known. */
void ss_owner_frames_find(struct ss_snapshot *snapshot);

#endif
