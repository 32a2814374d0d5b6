/*
 * Whether stacks are certain.
 */
#ifndef SS_REPORT_TEXT_FRAMES_H
#define SS_REPORT_TEXT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stacksnap.h"

/* Whether a stack has a heuristic frame. Then it is not known to be whole, also if it ends
   at a root; SS_END_GUESS_TEXT says so. */
bool ss_end_has_guess(const struct ss_snapshot *snapshot, const struct ss_task *thread);

#define SS_END_GUESS_TEXT                                                                \
	"not certain: [heuristic] frames are guesses, and frames may be missing"

#endif
