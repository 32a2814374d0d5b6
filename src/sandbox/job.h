/*
 * Runs one job in a confined child process and waits for it. The child inherits the
 * memory of its parent. It hands back bytes in files and a few numbers in a page that
 * both share; the parent treats all of them as untrusted.
 */
#ifndef SS_SANDBOX_JOB_H
#define SS_SANDBOX_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/confine.h"
#include "stacksnap.h"
#include "sandbox/sandbox.h"

/* Memory that the child shares with its parent. Belongs to one run at a time. */
struct ss_job_page {
	/* Written by the job: */
	volatile uint32_t step;	    /* what it is doing */
	volatile int32_t module;    /* whose bytes it is reading, or -1 */
	volatile uint32_t requests; /* output has requests in place of the result */
	volatile uint64_t value;
	/* Written by ss_job_run(): */
	uint32_t finished; /* the job has returned */
	uint32_t refused;  /* enum ss_confine_refused */
	uint32_t error_code;
	char error_message[1024];
	char error_remedy[1024];
};

/* NULL: no memory. */
struct ss_job_page *ss_job_page_new(void);
void ss_job_page_free(struct ss_job_page *page);

SS_DEFINE_CLEANUP(struct ss_job_page, ss_job_page, ss_job_page_free)

/* Runs in the child and writes its result to the file output. Its standard error is a
   file, too. The error is handed to the parent; NO_MEMORY counts as a failed child. */
typedef struct ss_error *ss_job_work(void *data, struct ss_job_page *page, int output);

struct ss_job {
	ss_job_work *work;
	void *data;
	struct ss_job_page *page; /* reset first */
	unsigned timeout_ms;	  /* then the child is killed */
	/* Likewise if it is blocked in one call: all that it does is reading files and
	   computing. */
	unsigned blocked_ms;
	/* Called in the parent if the child takes longer than a second; or NULL. */
	void (*slow)(void *data, uint32_t step);
	void *slow_data;
	/* Called in the parent several times a second: true kills the child. Or NULL. */
	bool (*stop)(void *data);
	void *stop_data;
	/* Called in the parent for ss_job_read() and ss_job_check(); or NULL. */
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	/* Called in the parent for ss_job_ask(): writes the answer to ret, at most max bytes,
	   and returns its size. Its time does not count. Or NULL. */
	size_t (*ask)(void *data, const void *bytes, size_t size, void *ret, size_t max);
	void *read_data;
	struct ss_confinement confinement;
};

/* What the job may call, in the child: the parent reads memory of the target, at most
   SS_JOB_READ_MAX bytes, or checks a thread. */
enum { SS_JOB_READ_MAX = (64 << 10) + 1 }; /* with the first byte of an answer */
size_t ss_job_read(uint64_t address, void *bytes, size_t size);
bool ss_job_check(pid_t tid);

/* Likewise. Returns the size of the answer; 0: there is none. */
size_t ss_job_ask(const void *bytes, size_t size, void *ret, size_t max);

struct ss_job_outcome {
	bool interrupted; /* by stop: nothing else counts then */
	bool failed;	  /* then cause and code say how */
	enum ss_sandbox_cause cause;
	int code;		 /* SIGNAL: its number; EXIT: the exit status */
	int output;		 /* what the job wrote; owned */
	int messages;		 /* what it wrote to standard error; owned */
	struct ss_error *error;	 /* of the job; owned */
	struct ss_job_page page; /* a copy, made after the child ended */
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
