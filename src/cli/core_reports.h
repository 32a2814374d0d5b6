/*
 * The directory with the reports of "stacksnap core --handler".
 */
#ifndef SS_CLI_CORE_REPORTS_H
#define SS_CLI_CORE_REPORTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "stacksnap.h"

enum { SS_CORE_REPORT_PATH = PATH_MAX };

/* The process that has crashed. */
struct ss_core_process {
	pid_t pid;
	pid_t tid;
	int signal;
	uint64_t time_s; /* since 1970 */
	bool protected;	 /* it had more rights than its user */
	struct ss_dump_process about;
};

/* Creates the directory if it is missing. Errors: SYSTEM, DENIED (others may write to it). */
struct ss_error *ss_core_reports_prepare(const char *directory);

/* Whether fewer reports than rate were written in the last minute. */
bool ss_core_reports_are_few(const char *directory, unsigned rate);

/* Stores the path of a new report. Errors: INVALID (it is too long). */
struct ss_error *ss_core_reports_name(const char *directory,
				      const struct ss_core_process *process,
				      const char *format, char ret[SS_CORE_REPORT_PATH]);

/* Removes the oldest reports until the others have at most that many bytes. */
void ss_core_reports_expire(const char *directory, uint64_t quota);

#endif
