/*
 * A child process without rights that answers requests until its owner ends it. It may
 * read hostile input: at worst an answer is missing or wrong. The owner must treat every
 * answer as untrusted input.
 *
 * A worker ends with the thread that started it (PR_SET_PDEATHSIG), so the thread that
 * calls ss_worker_start() must outlive it. Only one thread at a time may use it.
 */
#ifndef SS_SANDBOX_WORKER_H
#define SS_SANDBOX_WORKER_H

#include <stddef.h>

#include "base/error.h"
#include "sandbox/confine.h"
#include "stacksnap.h"
#include "sandbox/sandbox.h"

/* Bytes, and files that the worker may read. */
struct ss_worker_request {
	const uint8_t *bytes;
	size_t size;
	const int *files; /* owned by the worker, where they arrive */
	size_t file_count;
};

/* In the worker, while it serves a request: lets the owner read memory through the read
   function of the request (ss_worker_call()). Returns how many bytes; at most
   SS_WORKER_READ_MAX. */
size_t ss_worker_read(uint64_t address, void *bytes, size_t size);

enum { SS_WORKER_READ_MAX = 32 << 10 };

/* The same for several pieces in one message: at most SS_MEMORY_RANGES_MAX, and
   SS_MEMORY_RANGES_BYTES in all. */
void ss_worker_read_ranges(struct ss_memory_range *ranges, size_t count);

/* The same: whether a thread has been blocked since it was captured, by the check function of the
   request. */
bool ss_worker_check(pid_t tid);

/* What the owner reads for the worker in one call of it, at most; a check is a read. */
enum { SS_WORKER_READS_MAX = 1 << 14, SS_WORKER_READ_BYTES = 64 << 20 };

/* Memory for the worker, or NULL. */
struct ss_worker_memory {
	size_t (*read)(void *data, uint64_t address, void *bytes, size_t size);
	/* The same for many pieces at once; done of each is 0 before. NULL: one by one. */
	ss_memory_read_ranges_function *read_ranges;
	bool (*check)(void *data, pid_t tid); /* NULL: it may have run */
	void *data;
};

/* Runs in the worker for each request. *answer must stay valid until the next request.
   *module_at: a number of its choice that says what it is reading, or -1; the owner can read
   it after a crash. False: no memory; the worker ends. */
typedef bool ss_worker_serve(void *data, const struct ss_worker_request *request,
			     volatile int32_t *module_at, const uint8_t **answer,
			     size_t *answer_size);

struct ss_worker_options {
	ss_worker_serve *serve;
	void *data;
	unsigned timeout_ms; /* of one request, then the worker is killed */
	/* Work of the owner that cannot wait: called each millisecond until the answer is
	   there, or until it returns false. NULL: none. */
	bool (*meanwhile)(void *owner);
	void *owner;
	struct ss_confinement confinement;
};

struct ss_worker;

/* Creates a worker without starting it. Errors: NO_MEMORY. */
struct ss_error *ss_worker_new(const struct ss_worker_options *options,
			       struct ss_worker **ret);
/* Kills the worker if it runs. */
void ss_worker_free(struct ss_worker *worker);

/* Starts the worker, also after a failure. Errors: SYSTEM. */
struct ss_error *ss_worker_start(struct ss_worker *worker);

bool ss_worker_is_running(const struct ss_worker *worker);

/* The process id of a running worker. */
pid_t ss_worker_pid(const struct ss_worker *worker);

/* What the kernel refused (enum ss_confine_refused); set by the first answer. */
unsigned ss_worker_refused(const struct ss_worker *worker);

/* Sends a request, reads memory for the worker (NULL: none) and waits for the answer, which is valid until the next request. False:
   the worker failed, timed out or was not running (NO_CHILD), and does not run any more.
   failure->module is module_at, or -1 if the worker was killed from outside. */
bool ss_worker_call(struct ss_worker *worker, const struct ss_worker_request *request,
		    const struct ss_worker_memory *memory, const uint8_t **answer,
		    size_t *answer_size, struct ss_sandbox_failure *failure);

/* Kills a worker that gave an invalid answer. */
void ss_worker_reject(struct ss_worker *worker, struct ss_sandbox_failure *failure);

#endif
