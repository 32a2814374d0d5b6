/*
 * Futexes: which lock or condition a thread waits for, and who holds it.
 */
#ifndef SS_DIAGNOSE_FUTEX_H
#define SS_DIAGNOSE_FUTEX_H

#include "diagnose/diagnosis.h"

/* Fills in d->wait and d->text for a thread that is blocked on a futex. False, and
   nothing is changed: it is not. */
bool ss_futex_describe(struct ss_diagnosis *d);

#endif
