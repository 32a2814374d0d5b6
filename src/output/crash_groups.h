/*
 * Crashes that were grouped by their signature, as text and JSON.
 */
#ifndef SS_OUTPUT_CRASH_GROUPS_H
#define SS_OUTPUT_CRASH_GROUPS_H

#include <stdint.h>
#include <stdio.h>

#include "base/vector.h"

/* One crash. Strings are borrowed, and "" if they are not known. */
struct ss_crash_report {
	const char *hash; /* of the stack; what crashes are grouped by */
	const char *signature;
	const char *signal;
	const char *program;
	const char *build_id; /* of the program */
	const char *host;
	uint64_t time_ns; /* CLOCK_REALTIME */
};

struct ss_crash_reports {
	SS_VECTOR(struct ss_crash_report) items;
	size_t skipped; /* files that are not crash reports */
	/* In a directory of the handler: files that it has not written, and crashes without a report
	   because of its limits. */
	size_t foreign;
	uint64_t refused;
};

struct ss_error;

/* Sorts the reports and writes a list of groups, the largest first; rows limits text (0: no
   limit). Errors: NO_MEMORY. */
struct ss_error *ss_crash_groups_write_text(struct ss_crash_reports *reports,
					    unsigned rows, FILE *out);
struct ss_error *ss_crash_groups_write_json(struct ss_crash_reports *reports, FILE *out);

#endif
