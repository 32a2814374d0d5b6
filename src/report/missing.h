/*
 * What is missing in a snapshot: of which threads, and why.
 */
#ifndef SS_REPORT_MISSING_H
#define SS_REPORT_MISSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "stacksnap.h"

/* How many threads have an incomplete stack or were not captured. An idle thread whose stack is whole
   but for a guess counts only if strict. */
size_t ss_missing_count(const struct ss_snapshot *snapshot, bool strict);

/* Writes a line for each reason: "PREFIXthread 4711, 4712: REASON\n". Escapes nothing. */
void ss_missing_write(const struct ss_snapshot *snapshot, size_t max_stack, bool strict,
		      const char *prefix, FILE *out);

/* The reason for one thread; NULL: its stack is whole, or no memory. */
char *ss_missing_new(const struct ss_snapshot *snapshot, const struct ss_task *thread);

#endif
