/*
 * From the recordings of the last seconds to the text of a screen, in the sandbox.
 */
#ifndef SS_CLI_TOP_ANALYSIS_H
#define SS_CLI_TOP_ANALYSIS_H

#include "cli/analysis.h"
#include "report/top.h"

enum { SS_TOP_FILES = 2 };

struct ss_top_analysis {
	int files[SS_TOP_FILES]; /* opened for reading only; may grow meanwhile */
	uint64_t window_ns;	 /* samples that are older do not count */
	struct ss_top_view view;
	struct ss_file_requests requests;
	struct ss_analysis_owner owner;
	uint64_t threads; /* result: how many there are; untrusted */
};

/* *ret: the text, escaped, for free(); NULL if there are no samples yet. Errors: SYSTEM (the
   analysis failed), NO_MEMORY. */
struct ss_error *ss_top_analysis_run(struct ss_top_analysis *analysis, char **ret);
void ss_top_analysis_deinit(struct ss_top_analysis *analysis);

#endif
