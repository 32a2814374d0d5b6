/*
 * Messages on stderr. Every message is written here: it may contain names from the target,
 * so it is escaped.
 */
#ifndef SS_CLI_FAILURE_H
#define SS_CLI_FAILURE_H

#include "base/error.h"

/* Exit statuses. For several targets it is the worst one, but NOTHING only if all of them
   failed. Wrong usage is EX_USAGE (64). */
enum ss_status {
	SS_STATUS_WHOLE = 0,
	SS_STATUS_PARTIAL = 1,
	SS_STATUS_NOTHING = 2,
};

/* Prints "stacksnap: MESSAGE", and the remedy as a hint in a second line if there is one. */
void ss_failure_print(const struct ss_error *error);

/* Prints "stacksnap: " and a formatted line. */
void ss_failure_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line of a list that belongs to the message before. */
void ss_failure_list(const char *text);

/* Prints a hint: what to do about the message before. */
void ss_failure_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
