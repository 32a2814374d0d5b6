/*
 * The time limits of system calls.
 */
#ifndef SS_DIAGNOSE_TIME_LIMIT_H
#define SS_DIAGNOSE_TIME_LIMIT_H

#include "diagnose/diagnosis.h"
#include "model/call.h"
#include "model/futex.h"

/* Sets timed, timeout_ns and left_ns if known. */
void ss_time_limit_read(struct ss_diagnosis *d, const struct ss_call *call);
void ss_time_limit_read_futex(struct ss_diagnosis *d, const struct ss_futex *futex);

#endif
