/*
 * A lock of the C library that a thread held when a signal interrupted it, and for which its
 * signal handler waits: the thread waits for itself. Such locks record no owner, but the
 * stack below the handler shows who has it.
 */
#ifndef SS_DIAGNOSE_INTERRUPTED_LOCK_H
#define SS_DIAGNOSE_INTERRUPTED_LOCK_H

#include "diagnose/diagnosis.h"

/* Sets the owner of the wait if it is the waiting thread itself. */
void ss_interrupted_lock_fill(struct ss_diagnosis *d);

#endif
