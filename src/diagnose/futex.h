/*
 * Futexes: which lock or condition a thread waits for, and which thread owns it.
 */
#ifndef SS_DIAGNOSE_FUTEX_H
#define SS_DIAGNOSE_FUTEX_H

#include "diagnose/diagnosis.h"

/* Fills in the wait of a thread that is blocked on a futex. Returns false and changes
   nothing if it is not. */
bool ss_futex_fill(struct ss_diagnosis *d);

#endif
