/*
 * One target argument of the command line: PID, or PID/TID,TID...
 */
#ifndef SS_CLI_TARGET_ARGUMENT_H
#define SS_CLI_TARGET_ARGUMENT_H

#include "base/error.h"
#include "base/vector.h"
#include "stacksnap.h"

struct ss_target_argument {
	pid_t pid;
	SS_VECTOR(pid_t) tids; /* empty: all threads. Owned. */
};

/* Parses a thread or process id. what is its name in messages: "pid" or "tid".
   Errors: INVALID. */
struct ss_error *ss_target_argument_parse_id(const char *text, const char *what,
					     pid_t *ret);

/* Parses text. On failure *ret is unchanged. Errors: INVALID,
   NO_MEMORY. */
struct ss_error *ss_target_argument_parse(const char *text,
					  struct ss_target_argument *ret);
void ss_target_argument_deinit(struct ss_target_argument *argument);

#endif
