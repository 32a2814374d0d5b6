/*
 * Selects threads by id, by name and by state.
 */
#ifndef SS_CLI_SELECTION_H
#define SS_CLI_SELECTION_H

#include <argp.h>
#include <regex.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/vector.h"
#include "cli/target_argument.h"
#include "stacksnap.h"

/* The options -t and --state, for all targets. */
struct ss_selection {
	SS_VECTOR(pid_t) tids;
	SS_VECTOR(regex_t) patterns;
	const char *states; /* letters, in argv; NULL: any */
};

/* The parser of these options; its input is a struct ss_selection. */
extern const struct argp ss_selection_argp;

/* Adds a thread id, or a POSIX extended regular expression over the name.
   Errors: INVALID, NO_MEMORY. */
struct ss_error *ss_selection_add(struct ss_selection *selection, const char *text);
/* Sets the states. Errors: INVALID (unknown letter). */
struct ss_error *ss_selection_set_states(struct ss_selection *selection,
					 const char *letters);
void ss_selection_deinit(struct ss_selection *selection);

/* The selection applied to one target. */
struct ss_selection_run {
	const struct ss_selection *selection;
	const struct ss_target_argument *argument;
	size_t seen;	 /* calls of the filter */
	size_t selected; /* calls that selected a thread */
};

/* Whether there is any restriction. */
bool ss_selection_run_is_active(const struct ss_selection_run *run);

/* Whether there were threads, but none was selected. */
bool ss_selection_run_is_empty(const struct ss_selection_run *run);

/* A ss_thread_filter; data is a struct ss_selection_run. */
bool ss_selection_run_filter(void *data, pid_t tid, const char *name, char state);

/* Reports thread ids that are not in the snapshot. Returns their number. */
size_t ss_selection_run_report(const struct ss_selection_run *run,
			       const struct ss_snapshot *snapshot);

#endif
