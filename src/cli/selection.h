/*
 * Which threads are wanted, by id, by a pattern over the name, by state.
 */
#ifndef SS_CLI_SELECTION_H
#define SS_CLI_SELECTION_H

#include <regex.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/vector.h"
#include "cli/target_argument.h"
#include "stacksnap.h"

/* The options -t and --state: the same for all targets. */
struct ss_selection {
	SS_VECTOR(pid_t) tids;
	SS_VECTOR(regex_t) patterns;
	const char *states; /* letters, or NULL: any; of argv */
};

/* Adds a thread id, or a POSIX extended regular expression over the name.
   Errors: INVALID, NO_MEMORY. */
struct ss_error *ss_selection_add(struct ss_selection *selection, const char *text);
/* Sets the states. Errors: INVALID (a letter that is none). */
struct ss_error *ss_selection_set_states(struct ss_selection *selection,
					 const char *letters);
void ss_selection_deinit(struct ss_selection *selection);

/* The selection applied to one target, and what came of it. */
struct ss_selection_run {
	const struct ss_selection *selection;
	const struct ss_target_argument *argument;
	size_t seen;   /* how often a thread was asked about */
	size_t wanted; /* how often it was wanted */
};

/* Whether any thread may be left out. */
bool ss_selection_run_is_active(const struct ss_selection_run *run);

/* Whether threads were there and none of them was wanted. */
bool ss_selection_run_is_empty(const struct ss_selection_run *run);

/* A ss_thread_filter; data is a struct ss_selection_run. */
bool ss_selection_run_filter(void *data, pid_t tid, const char *name, char state);

/* Says which of the ids that were asked for are not in the snapshot; their count. */
size_t ss_selection_run_report(const struct ss_selection_run *run,
			       const struct ss_snapshot *snapshot);

#endif
