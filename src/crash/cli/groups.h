/*
 * Crash reports, grouped by signature: the JSON that "stacksnap core" and "stacksnap run" write. They
 * are untrusted and may be from other machines: a directory of them is read in the sandbox.
 */
#ifndef SS_CRASH_CLI_GROUPS_H
#define SS_CRASH_CLI_GROUPS_H

#include <stdbool.h>

#include "base/intern.h"
#include "cli/report.h"
#include "report/crash.h"

struct ss_crash_reader {
	struct ss_crash_reports reports; /* what was read: strings in strings */
	struct ss_intern *strings;
};

/* False without memory. */
bool ss_crash_reader_init(struct ss_crash_reader *reader);
void ss_crash_reader_deinit(struct ss_crash_reader *reader);

/* Adds what a file contains: one document, or one on each line. Others count as skipped.
   file_ns: when it was written, for reports without a time. False without memory. */
bool ss_crash_reader_add(struct ss_crash_reader *reader, const char *bytes, size_t size,
			 uint64_t file_ns);

/* For struct ss_command: shows the reports in the only argument, a directory. *ret is the exit status.
   Errors: INVALID (the format), SYSTEM, NO_MEMORY. */
struct ss_error *ss_crash_reports_run(const struct ss_report_arguments *arguments,
				      int *ret);

#endif
