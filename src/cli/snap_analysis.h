/*
 * From a capture to what "stacksnap snap" and "stacksnap core" print: unwinding, symbolization, wait analysis
 * and output, in the sandbox.
 */
#ifndef SS_CLI_SNAP_ANALYSIS_H
#define SS_CLI_SNAP_ANALYSIS_H

#include <stdbool.h>

#include "cli/analysis.h"
#include "cli/phases.h"

struct ss_snap_analysis {
	const struct ss_options *options;
	struct ss_capture *capture; /* owned; NULL if load is set */
	/* Makes the capture, in the sandbox; or NULL. */
	struct ss_error *(*load)(void *data, const struct ss_sandbox_attempt *attempt,
				 struct ss_capture **ret);
	void *load_data;
	const struct ss_selection_run *run;
	struct ss_phases *phases;
	struct ss_output *output;
	bool separate; /* another snapshot precedes it */
	bool color;
	struct ss_analysis_owner owner;
	/* Completes the stacks of these threads in the capture, as far as possible. Called
	   at most once; or NULL. */
	void (*complete)(void *data, const pid_t *tids, size_t count);
	void *complete_data;
	bool privileged; /* the caller is root; the sandbox may not be */
	bool completed;	 /* complete was called */
	struct ss_file_requests requests;
};

/* Prints the snapshot and, on standard error, what is missing; *ret says whether anything
   is missing. Errors: NO_PROCESS (no threads), SYSTEM (the output cannot be written), NO_MEMORY. */
struct ss_error *ss_snap_analysis_run(struct ss_snap_analysis *analysis, bool *ret);
void ss_snap_analysis_deinit(struct ss_snap_analysis *analysis);

#endif
