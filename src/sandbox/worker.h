/*
 * A confined child process that serves requests of its owner until the owner ends it, and may
 * meanwhile request things of its owner. It may read hostile input: at worst an answer is
 * missing or wrong. The owner must treat every answer as untrusted input.
 *
 * A worker ends with the thread that started it (PR_SET_PDEATHSIG), so the thread that
 * calls ss_worker_start() must outlive it. Only one thread at a time may use it.
 */
#ifndef SS_SANDBOX_WORKER_H
#define SS_SANDBOX_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "sandbox/sandbox.h"
#include "stacksnap.h"

/*
 * Takes from the calling process, for good, what it does not need to interpret untrusted
 * bytes: capabilities, open files, access to other processes and to the network, and
 * unlimited memory and time. It can still open files for reading (see ss_confine()), compute,
 * and write to the files and sockets that it holds.
 */

struct ss_confinement {
	/* If that is permitted: to a user id that no other process has, and gid. Where it does
	   not exist, in a user namespace, to uid. */
	bool change_ids;
	uid_t uid;
	gid_t gid;
	uint64_t memory;       /* bytes that may be allocated; 0: no limit */
	uint64_t output;       /* bytes that may be written to a file */
	uint64_t cpu_s;	       /* processor time, 0: no limit */
	bool keep_directories; /* keeps O_PATH directories */
	int more_output;       /* a file for output that stays open, or 0 */
	unsigned receives;     /* files that it may be sent over a socket, at most */
};

/* What the kernel refused. */
enum ss_confine_refused {
	SS_REFUSED_FILTER = 1 << 0, /* seccomp */
	SS_REFUSED_CAPABILITIES = 1 << 1,
	SS_REFUSED_ALL = 1 << 2, /* the process must end */
};

/* Closes every descriptor above standard error, except regular files that were opened
   read-only and close-on-exec, as the library opens the files of modules. What this
   program inherited is not close-on-exec. keep_directories: keeps directories that were
   opened with O_PATH and close-on-exec. */
void ss_confine_files(const struct ss_confinement *confinement);

/* Confines the calling process, which must have one thread and end with its parent
   (PR_SET_PDEATHSIG). Goes on if the kernel refuses
   a part; *ret is what was refused. Without Landlock it can open no files, unless it has a
   user id of its own. False: the parent has ended; or SS_REFUSED_ALL: there are neither
   Landlock nor seccomp nor such an id, and the process that is looked at belongs to another
   user. */
bool ss_confine(const struct ss_confinement *confinement, unsigned *ret);

/* Why a confined process has failed, by its exit status and by what the kernel refused; its step is
   the first one, and no module is the cause. */
struct ss_sandbox_failure ss_confine_failure(int status, unsigned refused);

/* Whether neither the work nor what it was reading is the cause: RLIMIT_CPU sends SIGXCPU first. It was
   root, a user that controls the process, or the kernel, because memory ran out. */
bool ss_confine_was_killed(const struct ss_sandbox_failure *failure);

/* Memory that a worker shares with its owner. */
struct ss_worker_page {
	/* Written by the worker: */
	volatile uint32_t step; /* what it is doing */
	volatile int32_t
		module; /* whose bytes it is reading; -1: none, or it has answered */
	volatile uint32_t
		refused; /* enum ss_confine_refused; set before the first answer */
	/* Of a job: */
	volatile uint32_t requests; /* output has requests in place of the result */
	volatile uint64_t value;
	uint32_t error_code;
	char error_message[1024];
	char error_remedy[1024];
};

/* NULL: no memory. */
struct ss_worker_page *ss_worker_page_new(void);
void ss_worker_page_free(struct ss_worker_page *page);

SS_DEFINE_CLEANUP(struct ss_worker_page, ss_worker_page, ss_worker_page_free)

/*
 * What both send: this, and then so many bytes. A worker gets WORK, and sends ANSWER, after
 * any number of other requests, each of which it gets a REPLY to.
 */
enum ss_worker_kind {
	SS_WORKER_WORK,
	SS_WORKER_ANSWER,
	SS_WORKER_READ, /* wanted bytes at the address value */
	SS_WORKER_RANGES, /* struct ss_worker_range follow; the reply: their sizes (uint32_t), then the bytes */
	SS_WORKER_CHECK, /* of the thread value; value of the reply: 1: it has not run */
	SS_WORKER_ASK,	 /* at most wanted bytes, by what follows */
	SS_WORKER_REPLY,
};

struct ss_worker_message {
	uint64_t size; /* of what follows */
	uint64_t kind;
	uint64_t value;
	uint64_t wanted;
};

struct ss_worker_range {
	uint64_t address;
	uint64_t size;
};

/* The worker ------------------------------------------------------------ */

/* Bytes, and files that the worker may read. */
struct ss_worker_request {
	const uint8_t *bytes;
	size_t size;
	const int *files; /* owned by the worker, where they arrive */
	size_t file_count;
};

/* Runs in the worker for each request. *answer must stay valid until the next request.
   *module_at: a number of its choice that says what it is reading, or -1; the owner can read
   it after a crash. False: no memory; the worker ends. */
typedef bool ss_worker_serve(void *data, const struct ss_worker_request *request,
			     volatile int32_t *module_at, const uint8_t **answer,
			     size_t *answer_size);

/*
 * In the worker, while it serves a request: what struct ss_worker_memory of the request
 * offers. Nothing is read, and every thread may have run, if that or the channel is missing.
 */
enum { SS_WORKER_READ_MAX = 64 << 10 };
/* Returns how many bytes; at most SS_WORKER_READ_MAX. */
size_t ss_worker_read(uint64_t address, void *bytes, size_t size);
/* Several pieces in one message: at most SS_MEMORY_RANGES_MAX, and SS_MEMORY_RANGES_BYTES in
   all. */
void ss_worker_read_ranges(struct ss_memory_range *ranges, size_t count);
/* Whether a thread has been blocked since it was captured. */
bool ss_worker_check(pid_t tid);
/* The size of the answer, at most max and SS_SANDBOX_ASK_MAX; 0: there is none. */
size_t ss_worker_ask(const void *bytes, size_t size, void *ret, size_t max);

/* The owner ------------------------------------------------------------- */

struct ss_worker_options {
	ss_worker_serve *serve;
	void *data;
	/* From its start on, it serves an empty request: see ss_worker_call(). Then it works even
	   where no sockets can be created, but can request nothing. */
	bool at_once;
	/* Of one request, without the time that its owner takes for ss_worker_ask(); then the
	   worker is killed. */
	unsigned timeout_ms;
	/* Likewise if it is blocked in one call for so long; 0: any time. */
	unsigned blocked_ms;
	/* Work of the owner that cannot wait: called each millisecond until the answer is
	   there, or until it returns false. NULL: none. */
	bool (*meanwhile)(void *owner);
	/* Called several times a second: true kills the worker. Or NULL. */
	bool (*stop)(void *owner);
	/* Called if a request takes longer than a second; or NULL. */
	void (*slow)(void *owner, uint32_t step);
	void *owner;
	/* Files that its standard output and error are; 0: nobody reads what it writes. */
	int output;
	int messages;
	struct ss_worker_page *page; /* NULL: it gets one of its own */
	struct ss_confinement confinement;
};

/* What the owner does for the worker while it serves a request. Each may be NULL: nothing is
   read, every thread may have run, there is no answer. */
struct ss_worker_memory {
	ss_memory_read_function *read;
	/* The same for many pieces at once; done of each is 0 before. NULL: one by one. */
	ss_memory_read_ranges_function *read_ranges;
	ss_thread_check_function *check;
	/* Writes the answer to ret, at most max bytes, and returns its size. */
	size_t (*ask)(void *data, const void *bytes, size_t size, void *ret, size_t max);
	void *data;
	/* Limits of reads and checks, and of what is read, for one request; 0: none. */
	size_t max_reads;
	uint64_t max_bytes;
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

/* Sends a request (NULL: the one that it serves from its start on), does what the worker
   requests (memory NULL: nothing) and waits for the answer, which is valid until the next
   request. False: the worker failed, timed out, was stopped, or was not running (NO_CHILD), and
   does not run any more. failure->module is that of its page, or -1 if the worker was killed from outside. */
bool ss_worker_call(struct ss_worker *worker, const struct ss_worker_request *request,
		    const struct ss_worker_memory *memory, const uint8_t **answer,
		    size_t *answer_size, struct ss_sandbox_failure *failure);

/* Kills the worker. False: it is blocked, and was abandoned. */
bool ss_worker_end(struct ss_worker *worker);

/* Kills a worker that gave an invalid answer. */
void ss_worker_reject(struct ss_worker *worker, struct ss_sandbox_failure *failure);

/*
 * Runs one job in a confined child process and waits for it. The child
 * inherits the memory of its parent. It hands back bytes in files and a few numbers in a page
 * that both share; the parent treats all of them as untrusted. What it requests meanwhile it
 * gets by ss_worker_read() and so on.
 */

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
