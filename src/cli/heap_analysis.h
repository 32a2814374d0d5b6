/*
 * Reads the heap of a process twice, in the sandbox, and prints the second census.
 */
#ifndef SS_CLI_HEAP_ANALYSIS_H
#define SS_CLI_HEAP_ANALYSIS_H

#include "cli/analysis.h"
#include "capture/late_reader.h"

struct ss_heap_analysis {
	const struct ss_options *options;
	unsigned sizes; /* rows to print; 0: all */
	unsigned classes;
	const struct ss_capture *capture;
	struct ss_late_reader *reader;
	struct ss_analysis_owner owner;
	struct ss_output *output;
};

/* *ret: whether anything is missing. Errors: UNSUPPORTED (no heap of glibc), SYSTEM,
   NO_MEMORY. */
struct ss_error *ss_heap_analysis_run(struct ss_heap_analysis *analysis, bool *ret);

#endif
