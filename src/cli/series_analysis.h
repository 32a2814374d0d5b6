/*
 * From the captures of a series to what is printed: all are interpreted by one process of
 * the sandbox, with one session.
 */
#ifndef SS_CLI_SERIES_ANALYSIS_H
#define SS_CLI_SERIES_ANALYSIS_H

#include "cli/analysis.h"
#include "cli/series.h"

struct ss_series_analysis {
	const struct ss_series *series;
	struct ss_capture *const *captures; /* at least one */
	size_t count;
	struct ss_analysis_owner owner;
	struct ss_file_requests requests;
	bool privileged; /* the caller is root; the sandbox may not be */
};

/* CPU time of the analysis, of the last attempt. Shared with the sandbox. */
struct ss_series_times {
	uint64_t first_ns; /* of the first snapshot */
	uint64_t later_ns; /* of all others */
};

/* Prints the series and, on standard error, what is missing; *ret says whether anything is.
   Errors: SYSTEM, NO_MEMORY, NO_PROCESS. */
struct ss_error *ss_series_analysis_run(struct ss_series_analysis *analysis, bool *ret,
					struct ss_series_times *ret_times);
void ss_series_analysis_deinit(struct ss_series_analysis *analysis);

#endif
