/*
 * Words for states, for what tasks do, for why stacks end, for what is missing, and for modes, on the
 * command line and in every format. Those for waits are in report/wait_text.h.
 */
#ifndef SS_REPORT_NAMES_H
#define SS_REPORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "data/names.h"
#include "stacksnap.h"

/*
 * The state of a thread in words.
 */

/* The states of proc(5) that are shown, in this order, the most active first. */
#define SS_STATE_LETTERS "RDSTtIZX"

/* Letters of states are below. */
enum { SS_STATE_COUNTS = 128 };

/* "sleeping" of 'S'. Never NULL. */
const char *ss_state_name(char state);

/* "thread", "goroutine" or "task". */
const char *ss_task_noun(enum ss_task_kind kind);
/* How many of the tasks of Python are greenlets. */
size_t ss_greenlet_count(const struct ss_snapshot *snapshot);

/* What a task of a runtime does: "chan receive", or its status. */
const char *ss_task_words(const struct ss_task *task);

/* "truncated: the frame limit was reached"; "complete" for SS_END_ROOT. Never NULL. */
const char *ss_end_text(enum ss_end end);

/* Whether a stack has a heuristic frame. Then it is not known to be whole, also if it ends
   at a root; SS_END_GUESS_TEXT says so. */
bool ss_end_has_guess(const struct ss_snapshot *snapshot, const struct ss_task *thread);

#define SS_END_GUESS_TEXT                                                                \
	"not certain: [heuristic] frames are guesses, and frames may be missing"

/* Writes the remedy, if there is one: "; --max-stack=1024 copies more". max_stack is the
   limit of the capture in bytes, 0: the default. mode: of the capture. stopped: whether a
   thread that the text is about was stopped. */
void ss_end_write_remedy(enum ss_end end, enum ss_mode mode, bool stopped,
			 size_t max_stack, FILE *out);

/* Finds the mode of that name. Returns false if there is none. */
bool ss_mode_find(const char *name, enum ss_mode *ret);

/*
 * What is missing in a snapshot: of which threads, and why.
 */

/* How many threads have an incomplete stack or were not captured. An idle thread whose stack is whole
   but for a guess counts only if strict. */
size_t ss_missing_count(const struct ss_snapshot *snapshot, bool strict);

/* Writes a line for each reason: "PREFIXthread 4711, 4712: REASON\n". Escapes nothing. */
void ss_missing_write(const struct ss_snapshot *snapshot, size_t max_stack, bool strict,
		      const char *prefix, FILE *out);

/* The reason for one thread; NULL: its stack is whole, or no memory. */
char *ss_missing_new(const struct ss_snapshot *snapshot, const struct ss_task *thread);

#endif
