/*
 * Names of states, of what tasks do, and of modes, on the command line and in every format.
 */
#ifndef SS_REPORT_NAMES_H
#define SS_REPORT_NAMES_H

#include <stdbool.h>

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

/* What a task of a runtime does: "chan receive", or its status. */
const char *ss_task_words(const struct ss_task *task);

/* "stop", "live", "no-stop", "auto". Never NULL. */
const char *ss_mode_name(enum ss_mode mode);

/* Finds the mode of that name. Returns false if there is none. */
bool ss_mode_find(const char *name, enum ss_mode *ret);

#endif
