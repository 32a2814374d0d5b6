/*
 * From recordings to what "stacksnap report" prints: reading, symbolization, merging and
 * output, in the sandbox.
 */
#ifndef SS_CLI_REPORT_ANALYSIS_H
#define SS_CLI_REPORT_ANALYSIS_H

#include "interpret/files.h"
#include "cli/report_files.h"
#include "cli/report_options.h"

struct ss_report_analysis {
	const struct ss_report_arguments *arguments;
	struct ss_report_files files;
	struct ss_file_requests requests;
	struct ss_output *output; /* not owned; NULL: the one that the arguments name */
};

void ss_report_analysis_deinit(struct ss_report_analysis *analysis);

/* Writes the report to the output and, to standard error, what is
   missing; *ret is an enum ss_status. Errors: INVALID (the output exists), SYSTEM, DENIED,
   NO_MEMORY. */
struct ss_error *ss_report_analysis_run(struct ss_report_analysis *analysis, int *ret);

#endif
