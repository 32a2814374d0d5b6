/*
 * The readable signature of a crash: the functions that tell one crash from another, as "a | b |
 * c", innermost first. Frames of how a process ends (raise, abort) are left out, and functions
 * that crash on behalf of their callers (memcpy, free) are followed by the caller. A handler that raises
 * the signal again is left out, too. Of a stack overflow they are the functions of the recursion, sorted. The rule is that of Socorro, Mozilla's collector of crash
 * reports.
 */
#ifndef SS_OUTPUT_SIGNATURE_H
#define SS_OUTPUT_SIGNATURE_H

#include <stdio.h>

#include "stacksnap.h"

/* Names are written unescaped. Nothing is written if every frame is left out. */
void ss_signature_write(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread, FILE *out);

/* The thread that a signal ended, or NULL. */
const struct ss_thread *ss_signature_thread(const struct ss_snapshot *snapshot);

#endif
