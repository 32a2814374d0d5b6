/*
 * From recordings to what "stacksnap diff" prints, in the sandbox.
 */
#ifndef SS_CLI_DIFF_ANALYSIS_H
#define SS_CLI_DIFF_ANALYSIS_H

#include "cli/analysis.h"
#include "cli/report_analysis.h"

struct ss_diff_analysis {
	const struct ss_options *options;
	/* One, whose first and last tick are compared, or two. */
	struct ss_report_files files;
	struct ss_file_requests requests;
	struct ss_output *output;
	bool privileged; /* the caller is root; the sandbox may not be */
};

/* Prints the difference and, on standard error, what is missing; *ret says whether anything
   is. Errors: INVALID (no recording, or it is empty), NO_PROCESS, SYSTEM, NO_MEMORY. */
struct ss_error *ss_diff_analysis_run(struct ss_diff_analysis *analysis, bool *ret);
void ss_diff_analysis_deinit(struct ss_diff_analysis *analysis);

#endif
