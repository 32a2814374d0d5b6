/*
 * From recordings to what "stacksnap report" prints: reading, symbolization, merging and
 * output, in the sandbox.
 */
#ifndef SS_CLI_REPORT_ANALYSIS_H
#define SS_CLI_REPORT_ANALYSIS_H

#include "base/vector.h"
#include "cli/file_requests.h"
#include "cli/report_options.h"

/* A recording. */
struct ss_report_file {
	const char *path;
	int fd;				/* owned */
	struct ss_recording *recording; /* in the sandbox only; owned */
};

struct ss_report_analysis {
	const struct ss_report_arguments *arguments;
	SS_VECTOR(struct ss_report_file) files;
	struct ss_file_requests requests;
	bool missing;		  /* a file could not be opened */
	struct ss_output *output; /* not owned; NULL: the one that the arguments name */
};

void ss_report_analysis_deinit(struct ss_report_analysis *analysis);

/* Opens a recording without reading it. Errors: INVALID (not a regular file),
   NO_PROCESS, SYSTEM, DENIED, NO_MEMORY. */
struct ss_error *ss_report_analysis_open(struct ss_report_analysis *analysis,
					 const char *path);

/* Adds a recording that is open for reading; fd is owned, also after an error. name is for
   messages. Errors: INVALID (fd is -1, or not a regular file), NO_MEMORY. */
struct ss_error *ss_report_analysis_add(struct ss_report_analysis *analysis, int fd,
					const char *name);

/* Writes the report to the output and, to standard error, what is
   missing; *ret is an enum ss_status. Errors: INVALID (the output exists), SYSTEM, DENIED,
   NO_MEMORY. */
struct ss_error *ss_report_analysis_run(struct ss_report_analysis *analysis, int *ret);

#endif
