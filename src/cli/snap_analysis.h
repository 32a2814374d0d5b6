/*
 * From a capture to what "stacksnap snap" and "stacksnap core" print: unwinding, symbolization, wait analysis
 * and output, in the sandbox.
 */
#ifndef SS_CLI_SNAP_ANALYSIS_H
#define SS_CLI_SNAP_ANALYSIS_H

#include <signal.h>
#include <stdbool.h>

#include "cli/analysis.h"
#include "cli/phases.h"

enum { SS_SNAP_REQUEST = 'S' }; /* requests for files begin otherwise */

/* What is missing of the stacks. */
struct ss_snap_request {
	bool runtimes;	      /* capture again with plan */
	bool goroutines;      /* plan is for goroutines; then there is nothing else */
	bool completed;	      /* was answered already: only a new child is needed */
	enum ss_jit_plan jit; /* what to do with plan; then there are no stacks */
	struct ss_gather_plan plan;
	const struct ss_stack_request *stacks; /* address 0: registers are missing */
	size_t count;
};

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
	uint64_t max_output; /* bytes; 0: no limit */
	bool separate;	     /* another snapshot precedes it */
	bool color;
	bool probe; /* end when the capture is complete, without names and output */
	bool save; /* with probe: add the stacks to the capture, one of many of its process */
	bool save_tasks; /* those of asyncio, too */
	unsigned
		plans; /* for runtimes, with which it was made, one after the other, if save */
	bool saved; /* there have been stacks to be saved: the process has a runtime */
	bool whole; /* the last ones that were saved lack nothing. Untrusted */
	struct ss_analysis_owner owner;
	/* Completes stacks in the capture, as far as possible. Whether that changed
	   anything. */
	bool (*complete)(void *data, const struct ss_snap_request *request);
	void *complete_data;
	/* For struct ss_sandbox_options, with complete_data; or NULL. */
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	const sigset_t *end_signals; /* one that arrives ends the analysis; or NULL */
	unsigned stops; /* how often threads may be stopped to read their registers */
	bool settled;	/* no more can be had */
	bool asked_goroutines;
	bool privileged; /* the caller is root; the sandbox may not be */
	struct ss_row_source rows;
	struct ss_file_requests requests;
};

/* Prints the snapshot and, on standard error, what is missing; *ret says whether anything
   is missing. Errors: NO_PROCESS (no threads), SYSTEM (the output cannot be written), INTERRUPTED,
   NO_MEMORY. */
struct ss_error *ss_snap_analysis_run(struct ss_snap_analysis *analysis, bool *ret);
void ss_snap_analysis_deinit(struct ss_snap_analysis *analysis);

#endif
