/*
 * Runs a function for each of several processes at the same time, each in a child process of
 * its own, which opens, captures and interprets one process as if it were the only one.
 */
#ifndef SS_CLI_EACH_PROCESS_H
#define SS_CLI_EACH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* Returns the exit status of the child. */
typedef int ss_each_process_work(void *data, size_t index);

struct ss_each_process {
	size_t count;
	ss_each_process_work *work;
	void *data;
	/* What the children write to standard output is copied to this stream, in their
	   order; NULL: it stays as it is. */
	FILE *out;
	const char *separator; /* between two outputs that are not empty, or NULL */
};

/*
 * Runs the children, at most 64 at a time. Passes on SIGINT, SIGTERM and SIGHUP to them, and
 * waits for all of them. ret_statuses has an exit status for each; 128 and the signal's number
 * for one that a signal has ended. The caller must have one thread. Errors: SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_each_process_run(const struct ss_each_process *each,
				     int *ret_statuses);

#endif
