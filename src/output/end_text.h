/*
 * Why a stack ends, and what the user can do about it.
 */
#ifndef SS_OUTPUT_END_TEXT_H
#define SS_OUTPUT_END_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "stacksnap.h"

/* "truncated: the frame limit was reached"; "complete" for SS_END_ROOT. Never NULL. */
const char *ss_end_text(enum ss_end end);

/* Writes the remedy, if there is one: "; --max-stack=1024 copies more". max_stack is the
   limit of the capture in bytes, 0: the default. mode: of the capture. stopped: whether a
   thread that the text is about was stopped. */
void ss_end_write_remedy(enum ss_end end, enum ss_mode mode, bool stopped,
			 size_t max_stack, FILE *out);

/* Whether a stack has a heuristic frame. Then it is not known to be whole, also if it ends
   at a root; SS_END_GUESS_TEXT says so. */
bool ss_end_has_guess(const struct ss_snapshot *snapshot, const struct ss_thread *thread);

#define SS_END_GUESS_TEXT                                                                \
	"not certain: [heuristic] frames are guesses, and frames may be missing"

#endif
