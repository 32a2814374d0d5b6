/*
 * Times in words, and the time limits of system calls.
 */
#ifndef SS_DIAGNOSE_DURATION_H
#define SS_DIAGNOSE_DURATION_H

#include <stdint.h>

#include "diagnose/diagnosis.h"
#include "model/call.h"

/* "200 ms", "1.5 s", "2 h 5 min" */
void ss_duration_write(uint64_t time_ns, struct ss_words *words);

/* Sets timeout_ns, and left_ns where it is known, of a call with a time limit. */
void ss_duration_read(struct ss_diagnosis *d, const struct ss_call *call);

/* ", for 10 s at most", and what is left of it; or nothing: there is no limit. */
void ss_duration_write_limit(struct ss_diagnosis *d);

#endif
