/*
 * A function that runs in a child process next to the screen of "stacksnap top".
 */
#ifndef SS_CLI_TOP_JOB_H
#define SS_CLI_TOP_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/child.h"
#include "base/error.h"

/* Returns the exit status. Standard output and standard error are the files of the job. */
typedef int ss_top_work(void *data);

struct ss_top_job {
	struct ss_child child;
	int out;      /* in memory; -1: none */
	int messages; /* the same; untrusted names in them are escaped */
	uint64_t begin_ns;
};

#define SS_TOP_NO_JOB                                                                    \
	{                                                                                \
		.child = SS_NO_CHILD, .out = -1, .messages = -1                          \
	}

/* Starts a job that does not run. The child ends with this program; mask: its signals.
   Errors: SYSTEM. */
struct ss_error *ss_top_job_start(struct ss_top_job *job, const sigset_t *mask,
				  ss_top_work *work, void *data);

/* Whether a job that ran has ended. Does not wait. */
bool ss_top_job_poll(struct ss_top_job *job);

/* Ends the job, if it runs, and closes its files. */
void ss_top_job_end(struct ss_top_job *job);

#endif
