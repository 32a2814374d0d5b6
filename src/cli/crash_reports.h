/*
 * A directory of crash reports, grouped by signature: the JSON that "stacksnap core" and
 * "stacksnap run" write. The files are untrusted and may be from other machines: they are read
 * in the sandbox.
 */
#ifndef SS_CLI_CRASH_REPORTS_H
#define SS_CLI_CRASH_REPORTS_H

#include "base/error.h"
#include "cli/report_options.h"

/* Whether the only argument is a directory. */
bool ss_crash_reports_are_wanted(const struct ss_report_arguments *arguments);

/* *ret is the exit status. Errors: INVALID (the format), SYSTEM, NO_MEMORY. */
struct ss_error *ss_crash_reports_run(struct ss_report_arguments *arguments, int *ret);

#endif
