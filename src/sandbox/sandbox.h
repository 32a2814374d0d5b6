/*
 * Work in a child process without privileges.
 */
#ifndef SS_SANDBOX_SANDBOX_H
#define SS_SANDBOX_SANDBOX_H

#include "data/cache.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "stacksnap.h"

/*
 * Interpreting a capture or a recording means parsing untrusted input: ELF, DWARF, perf
 * maps. ss_sandbox_run() does it in a child process without capabilities, which can
 * open files for reading only, has no access to other processes and the network, and
 * has limits for memory, time and output. If the child dies, a new child does less: see
 * the levels.
 */

enum ss_sandbox_level {
	SS_SANDBOX_NAMES = 0, /* everything, except modules that were fatal */
	SS_SANDBOX_RAW,	      /* no symbols */
	/* No module is read: call ss_capture_unwind() with max_frames 1 and a
	   frames_reason. The work runs in the calling process. */
	SS_SANDBOX_PLACES,
};

/* What the work is doing. */
enum ss_sandbox_step {
	SS_SANDBOX_UNWIND = 0,
	SS_SANDBOX_HEAP,
	SS_SANDBOX_SYMBOLIZE,
	SS_SANDBOX_DIAGNOSE,
	SS_SANDBOX_OUTPUT,
};

/* "unwinding", "symbolization", ... Never NULL. */
const char *ss_sandbox_step_name(enum ss_sandbox_step step);

enum ss_sandbox_cause {
	SS_SANDBOX_SIGNAL = 0,
	SS_SANDBOX_EXIT,
	SS_SANDBOX_TIMEOUT,
	SS_SANDBOX_MEMORY,
	SS_SANDBOX_INVALID,  /* its answer is corrupted */
	SS_SANDBOX_NO_CHILD, /* no child process could be created */
	SS_SANDBOX_REFUSED, /* nothing would keep it from memory of others: it did nothing */
};

/* A child that failed. */
struct ss_sandbox_failure {
	enum ss_sandbox_cause cause;
	int code; /* SIGNAL: number; EXIT: exit status; else 0 */
	enum ss_sandbox_step step;
	int32_t module; /* the module that was being read, skipped from now on; or -1 */
};

/* Writes words such as "crashed (SIGSEGV) during symbolization" to text, at most size bytes
   with the NUL. */
void ss_sandbox_failure_describe(const struct ss_sandbox_failure *failure, char *text,
				 size_t size);

/* One attempt: a call of the work function. Valid during the call. */
struct ss_sandbox_attempt {
	enum ss_sandbox_level level;
	bool no_waits;		    /* skip ss_snapshot_diagnose(): it was fatal */
	bool may_request;	    /* ss_sandbox_request() may be called */
	struct ss_session *session; /* skips the modules that were fatal */
	int output;		    /* file for the result */
	const struct ss_sandbox_failure *failures; /* of the attempts before */
	size_t failure_count;
};

/* Call this when a step begins. */
void ss_sandbox_enter(const struct ss_sandbox_attempt *attempt,
		      enum ss_sandbox_step step);

/* Sets value of struct ss_sandbox_result. */
void ss_sandbox_set_value(const struct ss_sandbox_attempt *attempt, uint64_t value);

/*
 * Requests something from the calling process that the child cannot get: registers of more
 * threads, files that it may not open. When the work has returned, the answer function
 * gets the bytes of all requests; then a new child, which sees what the answer function
 * changed, calls the work again. An attempt that makes a request must not write to output.
 * Errors: INVALID (may_request is false), SYSTEM.
 */
struct ss_error *ss_sandbox_request(const struct ss_sandbox_attempt *attempt,
				    const void *bytes, size_t size);

/*
 * Functions for struct ss_unwind_options, with the attempt as data: the calling process reads
 * memory of the target for the child, by the functions of struct ss_sandbox_options. Without
 * them, nothing is read.
 */
size_t ss_sandbox_read(void *attempt, uint64_t address, void *bytes, size_t size);
void ss_sandbox_read_ranges(void *attempt, struct ss_memory_range *ranges, size_t count);
bool ss_sandbox_check(void *attempt, pid_t tid);

/*
 * Requests something from the calling process, as ss_sandbox_request() does, but waits for the
 * answer: at most max bytes from the ask function of struct ss_sandbox_options. Returns their
 * number. 0: there is no answer, since no request may be made, or the bytes are more than
 * SS_SANDBOX_ASK_MAX; ss_sandbox_request() may be possible. An attempt may ask several times.
 */
enum { SS_SANDBOX_ASK_MAX = 128 << 10 };
size_t ss_sandbox_ask(const struct ss_sandbox_attempt *attempt, const void *bytes,
		      size_t size, void *ret, size_t max);

/* Interprets. Runs in the child, which has a copy of the caller's memory. Its standard
   error is a file. ss_sandbox_run() returns its error, except NO_MEMORY, which is a
   failure of the child. */
typedef struct ss_error *ss_sandbox_work(void *data,
					 const struct ss_sandbox_attempt *attempt);

struct ss_sandbox_options {
	size_t size; /* sizeof(struct ss_sandbox_options) */
	/* For the session of each attempt. The calling process opens it, so the sysroot may need
	   privileges. Zeroed: the defaults */
	struct ss_session_options session;
	struct ss_session_files files;
	bool change_ids; /* change to uid and gid, if the caller may */
	uid_t uid;
	gid_t gid;
	unsigned timeout_ms; /* of all attempts together, without answers; 0: 60000 */
	/* Bytes that the child may allocate in addition to 256 MiB and a quarter of the
	   machine's memory (at most 2 GiB): the size of the captures, for example */
	uint64_t more_memory;
	/* Bytes; ss_sandbox_run() fails if the result has more. 0: 1 GiB, and a larger result
	   is tried again with less effort. */
	uint64_t max_output;
	enum ss_sandbox_level first_level; /* NAMES or RAW */
	/* ss_sandbox_run() fails if this level fails. RAW; 0: PLACES */
	enum ss_sandbox_level last_level;
	bool keep_modules;     /* do not skip single modules */
	unsigned max_requests; /* that are answered, in all attempts together */
	/* Runs in the calling process; bytes are untrusted. NULL: no requests */
	void (*answer)(void *data, const void *bytes, size_t size);
	/* Called once if an attempt takes longer than a second; or NULL */
	void (*slow)(void *data, enum ss_sandbox_step step);
	/* Called in the calling process for ss_sandbox_read() and ss_sandbox_check(): what the
	   child may read while it works. Or NULL. */
	ss_memory_read_function *read;
	ss_thread_check_function *check;
	/* Likewise for ss_sandbox_ask(): writes the answer, at most max bytes, and returns its
	   size. The bytes of the request are untrusted. Or NULL. */
	size_t (*ask)(void *data, const void *bytes, size_t size, void *ret, size_t max);
	/* Gets what the session of the last attempt found; or NULL. The calling process
	   writes it; the child has no access to the directory. */
	struct ss_cache *cache;
	/* Called in the calling process several times a second while a child works: true kills
	   it, and ss_sandbox_run() fails with INTERRUPTED. Or NULL. */
	bool (*stop)(void *data);
};

struct ss_sandbox_result {
	enum ss_sandbox_level level; /* of the attempt that succeeded */
	bool no_waits;
	int output;	/* file that the work wrote; untrusted */
	int messages;	/* file of its standard error; untrusted */
	uint64_t value; /* see ss_sandbox_set_value(); 0: not set. Untrusted */
	const struct ss_sandbox_failure *failures;
	size_t failure_count;
	bool partial; /* the kernel refused a part of the sandbox */
};

/*
 * Runs work in a child process and waits for it. After a failure it tries again:
 * without the module that was being read (up to three modules); without wait analysis,
 * if the child failed in it; then with the next level. The caller must be
 * single-threaded, or the work must call only functions that are safe after fork(2) in
 * a threaded process. Errors: those of work, of ss_session_new(); SYSTEM (every level
 * failed), INTERRUPTED, INVALID, NO_MEMORY.
 */
struct ss_error *ss_sandbox_run(const struct ss_sandbox_options *options,
				ss_sandbox_work *work, void *data,
				struct ss_sandbox_result **ret);

void ss_sandbox_result_free(struct ss_sandbox_result *result);

SS_DEFINE_CLEANUP(struct ss_sandbox_result, ss_sandbox_result, ss_sandbox_result_free)

#endif
