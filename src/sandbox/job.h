/*
 * Runs one job in a confined child process (sandbox/worker.h) and waits for it. The child
 * inherits the memory of its parent. It hands back bytes in files and a few numbers in a page
 * that both share; the parent treats all of them as untrusted. What it requests meanwhile it
 * gets by ss_worker_read() and so on.
 */
#ifndef SS_SANDBOX_JOB_H
#define SS_SANDBOX_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/sandbox.h"
#include "sandbox/worker.h"

/* Runs in the child and writes its result to the file output. Its standard error is a
   file, too. The error is handed to the parent; NO_MEMORY counts as a failed child. */
typedef struct ss_error *ss_job_work(void *data, struct ss_worker_page *page, int output);

struct ss_job {
	ss_job_work *work;
	void *data;
	struct ss_worker_page *page; /* reset first */
	/* As in struct ss_worker_options; data is the owner. */
	unsigned timeout_ms;
	unsigned blocked_ms;
	bool (*stop)(void *data);
	void (*slow)(void *data, uint32_t step);
	struct ss_worker_memory memory;
	struct ss_confinement confinement;
};

struct ss_job_outcome {
	bool interrupted; /* by stop: nothing else counts then */
	bool failed;
	struct ss_sandbox_failure failure;
	int output;		    /* what the job wrote; owned */
	int messages;		    /* what it wrote to standard error; owned */
	struct ss_error *error;	    /* of the job; owned */
	struct ss_worker_page page; /* a copy, made after the child ended */
};

#define SS_JOB_NO_OUTCOME                                                                \
	{                                                                                \
		.output = -1, .messages = -1                                             \
	}

/* A child that SIGKILL has ended, although its time was not over, is replaced twice. Of the
   last one, no module is said to be the cause. Errors: SYSTEM, NO_MEMORY: the child could not
   be created. */
struct ss_error *ss_job_run(const struct ss_job *job, struct ss_job_outcome *ret);
void ss_job_outcome_deinit(struct ss_job_outcome *outcome);

#endif
