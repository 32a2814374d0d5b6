/*
 * System calls in words: what a thread that is blocked in one waits for.
 */
#ifndef SS_DIAGNOSE_CALL_H
#define SS_DIAGNOSE_CALL_H

#include "diagnose/diagnosis.h"

/* Fills in d->wait and d->text for a thread whose system call is known. */
void ss_call_describe(struct ss_diagnosis *d);

#endif
