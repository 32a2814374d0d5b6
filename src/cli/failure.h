/*
 * What is told on stderr. Every message passes through here: it may hold names
 * from the target and is escaped.
 */
#ifndef SS_CLI_FAILURE_H
#define SS_CLI_FAILURE_H

#include "base/error.h"

/* Exit statuses. The worst of several targets counts, except that NOTHING needs all
   of them. Wrong usage is EX_USAGE (64). */
enum ss_status {
	SS_STATUS_WHOLE = 0,
	SS_STATUS_PARTIAL = 1,
	SS_STATUS_NOTHING = 2,
};

/* "stacksnap: MESSAGE", and the remedy in a second line where there is one. */
void ss_failure_print(const struct ss_error *error);

/* "stacksnap: " and a formatted line. */
void ss_failure_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
