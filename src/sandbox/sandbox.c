/*
 * Runs work in a child, again and again with less effort until it succeeds.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/search.h"
#include "data/cache.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "sandbox/worker.h"
#include "sandbox/sandbox.h"

enum {
	SKIPS_MAX = 3, /* modules that are skipped before names are given up */
	/* Each skips a module, skips waits, or lowers the level. */
	FAILURES_MAX = SKIPS_MAX + 1 + SS_SANDBOX_PLACES + 1,
	TIMEOUT_MS = 60000,
	SHARE_MIN_MS = 500, /* of an attempt, however little time is left */
	/* How long a child may be blocked in one call: a busy disk may need seconds, but
	   a server that did not respond once will hardly do so later. */
	BLOCKED_MS = 5000,
	BLOCKED_AGAIN_MS = 1000,
	REQUEST_MAX = 16 << 20,
};

/* Images of modules that have no file; the debug information of a browser is 2 GiB. */
#define MEMORY_IMAGES ((uint64_t)256 << 20)
#define MEMORY_MAX ((uint64_t)2 << 30)

/* JSON of 5,000 threads with 300 frames each. */
#define OUTPUT_MAX ((uint64_t)1 << 30)

/* What work gets, and the page behind it. */
struct attempt {
	struct ss_sandbox_attempt pub;
	struct ss_worker_page *page;
};

struct result {
	struct ss_sandbox_result pub;
	struct ss_sandbox_failure failures[FAILURES_MAX];
};

struct sandbox {
	struct ss_sandbox_options options;
	ss_sandbox_work *work;
	void *data;
	struct ss_worker_page *page;
	struct attempt attempt;
	struct result *result;
	int32_t skips[SKIPS_MAX];
	size_t skip_count;
	unsigned requests; /* that may still be made */
	unsigned left_ms;
	int saved;	    /* file for what the session of an attempt found, or -1 */
	uint64_t answer_ns; /* in the answer function; not limited */
};

static const char *const step_names[] = {
	[SS_SANDBOX_UNWIND] = "unwinding",
	[SS_SANDBOX_HEAP] = "heap analysis",
	[SS_SANDBOX_SYMBOLIZE] = "symbolization",
	[SS_SANDBOX_DIAGNOSE] = "wait analysis",
	[SS_SANDBOX_OUTPUT] = "output",
};

const char *ss_sandbox_step_name(enum ss_sandbox_step step)
{
	return (size_t)step < SS_ARRAY_SIZE(step_names) ? step_names[step] : "unknown";
}

static const struct {
	int number;
	const char *text;
} signals[] = {
	{ SIGSEGV, "crashed (SIGSEGV)" },
	{ SIGBUS, "crashed (SIGBUS)" },
	{ SIGABRT, "crashed (SIGABRT)" },
	{ SIGFPE, "crashed (SIGFPE)" },
	{ SIGILL, "crashed (SIGILL)" },
	{ SIGKILL, "was killed from outside (SIGKILL)" },
	{ SIGSYS, "made a forbidden system call (SIGSYS)" },
	{ SIGXCPU, "exceeded its processor time (SIGXCPU)" },
	{ SIGXFSZ, "exceeded its output limit (SIGXFSZ)" },
};

static void describe_signal(int number, char *text, size_t size)
{
	const char *found = NULL;

	for (size_t i = 0; i < SS_ARRAY_SIZE(signals); i++) {
		if (signals[i].number == number)
			found = signals[i].text;
	}
	if (found)
		(void)snprintf(text, size, "%s", found); /* may be cut */
	else
		(void)snprintf(text, size, "was killed by signal %d", number);
}

void ss_sandbox_failure_describe(const struct ss_sandbox_failure *failure, char *text,
				 size_t size)
{
	char how[64] = "";

	switch (failure->cause) {
	case SS_SANDBOX_SIGNAL:
		describe_signal(failure->code, how, sizeof(how));
		break;
	case SS_SANDBOX_EXIT:
		(void)snprintf(how, sizeof(how), "exited with status %d", failure->code);
		break;
	case SS_SANDBOX_TIMEOUT:
		(void)snprintf(how, sizeof(how), "timed out");
		break;
	case SS_SANDBOX_MEMORY:
		(void)snprintf(how, sizeof(how), "ran out of memory");
		break;
	case SS_SANDBOX_INVALID:
		(void)snprintf(how, sizeof(how), "returned corrupted data");
		break;
	case SS_SANDBOX_NO_CHILD:
		(void)snprintf(text, size, "could not be started");
		return;
	case SS_SANDBOX_REFUSED:
		(void)snprintf(text, size,
			       "cannot be confined: the kernel refuses Landlock, seccomp "
			       "and a user of its own");
		return;
	}
	(void)snprintf(text, size, "%s during %s", how,
		       ss_sandbox_step_name(failure->step)); /* may be cut */
}

/* What work calls --------------------------------------------------------- */

/* The attempt that work has is the first member of ours. */
static struct ss_worker_page *page_of(const struct ss_sandbox_attempt *attempt)
{
	return ((const struct attempt *)attempt)->page;
}

void ss_sandbox_enter(const struct ss_sandbox_attempt *attempt, enum ss_sandbox_step step)
{
	struct ss_worker_page *page = page_of(attempt);

	page->module = -1;
	page->step = step;
}

void ss_sandbox_set_value(const struct ss_sandbox_attempt *attempt, uint64_t value)
{
	page_of(attempt)->value = value;
}

struct ss_error *ss_sandbox_request(const struct ss_sandbox_attempt *attempt,
				    const void *bytes, size_t size)
{
	if (!attempt->may_request)
		return ss_error_new(SS_ERROR_INVALID, "no request may be made");
	page_of(attempt)->requests = 1;
	int result = ss_io_write_all(attempt->output, bytes, size);
	return result < 0 ? ss_error_new_errno(-result, "cannot write a request") : NULL;
}

size_t ss_sandbox_read(void *attempt, uint64_t address, void *bytes, size_t size)
{
	const struct ss_sandbox_attempt *pub = attempt;

	return pub->level < SS_SANDBOX_PLACES ? ss_worker_read(address, bytes, size) : 0;
}

void ss_sandbox_read_ranges(void *attempt, struct ss_memory_range *ranges, size_t count)
{
	const struct ss_sandbox_attempt *pub = attempt;

	if (pub->level < SS_SANDBOX_PLACES)
		ss_worker_read_ranges(ranges, count);
}

bool ss_sandbox_check(void *attempt, pid_t tid)
{
	const struct ss_sandbox_attempt *pub = attempt;

	return pub->level < SS_SANDBOX_PLACES && ss_worker_check(tid);
}

size_t ss_sandbox_ask(const struct ss_sandbox_attempt *attempt, const void *bytes,
		      size_t size, void *ret, size_t max)
{
	return attempt->may_request ? ss_worker_ask(bytes, size, ret, max) : 0;
}

/* Attempts ---------------------------------------------------------------- */

void ss_sandbox_result_free(struct ss_sandbox_result *result)
{
	if (!result)
		return;
	close_cleanup(&result->output);
	close_cleanup(&result->messages);
	free(result);
}

static void sandbox_deinit(struct sandbox *sandbox)
{
	ss_session_free(sandbox->attempt.pub.session);
	ss_worker_page_free(sandbox->page);
	if (sandbox->result)
		ss_sandbox_result_free(&sandbox->result->pub);
}

static struct ss_error *sandbox_init(struct sandbox *sandbox,
				     const struct ss_sandbox_options *options)
{
	if (options)
		memcpy(&sandbox->options, options,
		       SS_MIN(options->size, sizeof(sandbox->options)));
	if (sandbox->options.last_level == 0)
		sandbox->options.last_level = SS_SANDBOX_PLACES;
	sandbox->requests = sandbox->options.answer ? sandbox->options.max_requests : 0;
	sandbox->left_ms = sandbox->options.timeout_ms ? sandbox->options.timeout_ms :
							 TIMEOUT_MS;
	sandbox->page = ss_worker_page_new();
	sandbox->result = calloc(1, sizeof(*sandbox->result));
	if (!sandbox->page || !sandbox->result)
		return ss_error_no_memory();
	sandbox->result->pub.output = sandbox->result->pub.messages = -1;
	sandbox->result->pub.failures = sandbox->result->failures;
	sandbox->attempt = (struct attempt){
		.pub = { .level = sandbox->options.first_level,
			 .output = -1,
			 .failures = sandbox->result->failures },
		.page = sandbox->page,
	};
	return NULL;
}

/* In the calling process: /proc/PID/root, as a sysroot, is closed to the child. */
static struct ss_error *open_session(struct sandbox *sandbox)
{
	struct ss_session *session = NULL;

	ss_session_free(take_ptr(sandbox->attempt.pub.session));
	struct ss_error *error = ss_session_new(&sandbox->options.session, &session);
	if (!session)
		return error;
	session->files = sandbox->options.files;
	session->module_at = sandbox->options.keep_modules ? NULL :
							     &sandbox->page->module;
	session->skip_modules = sandbox->skips;
	session->skip_count = sandbox->skip_count;
	sandbox->attempt.pub.session = session;
	return NULL;
}

static uint64_t memory_limit(const struct ss_sandbox_options *options)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_size = sysconf(_SC_PAGESIZE);
	uint64_t share = MEMORY_MAX;

	if (pages > 0 && page_size > 0)
		share = SS_MIN(share, (uint64_t)pages * (uint64_t)page_size / 4);
	return options->more_memory + MEMORY_IMAGES + share;
}

static struct ss_error *work_in_child(void *data, struct ss_worker_page *page, int output)
{
	struct sandbox *sandbox = data;

	(void)page;
	sandbox->attempt.pub.output = output;
	struct ss_error *error = sandbox->work(sandbox->data, &sandbox->attempt.pub);
	if (!error && sandbox->saved >= 0)
		ss_session_save(sandbox->attempt.pub.session, sandbox->saved);
	return error;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct sandbox *sandbox = data;

	return sandbox->options.read(sandbox->data, address, bytes, size);
}

static bool check_thread(void *data, pid_t tid)
{
	const struct sandbox *sandbox = data;

	return sandbox->options.check(sandbox->data, tid);
}

static size_t ask(void *data, const void *bytes, size_t size, void *ret, size_t max)
{
	struct sandbox *sandbox = data;
	uint64_t begin_ns = ss_now_ns();

	if (sandbox->requests == 0)
		return 0;
	sandbox->requests--;
	size_t answered = sandbox->options.ask(sandbox->data, bytes, size, ret, max);
	sandbox->answer_ns += ss_now_ns() - begin_ns;
	return answered;
}

static bool is_stopped(void *data)
{
	const struct sandbox *sandbox = data;

	return sandbox->options.stop(sandbox->data);
}

static void report_slow(void *data, uint32_t step)
{
	const struct sandbox *sandbox = data;

	sandbox->options.slow(sandbox->data, (enum ss_sandbox_step)step);
}

static bool has_timed_out(const struct sandbox *sandbox)
{
	return ss_any(sandbox->attempt.pub.failure_count, i,
		      sandbox->result->failures[i].cause == SS_SANDBOX_TIMEOUT);
}

static struct ss_error *run_child(struct sandbox *sandbox, unsigned share_ms,
				  struct ss_job_outcome *ret)
{
	const struct ss_sandbox_options *options = &sandbox->options;
	const struct ss_job job = {
		.work = work_in_child,
		.data = sandbox,
		.page = sandbox->page,
		.timeout_ms = share_ms,
		.blocked_ms = has_timed_out(sandbox) ? BLOCKED_AGAIN_MS : BLOCKED_MS,
		.slow = options->slow ? report_slow : NULL,
		.stop = options->stop ? is_stopped : NULL,
		.memory = {
			.read = options->read ? read_memory : NULL,
			.check = options->check ? check_thread : NULL,
			.ask = options->ask ? ask : NULL,
			.data = sandbox,
		},
		.confinement = {
			.change_ids = options->change_ids,
			.uid = options->uid,
			.gid = options->gid,
			.memory = memory_limit(options),
			.output = options->max_output ? options->max_output : OUTPUT_MAX,
			.cpu_s = share_ms / 1000 + 1,
			.keep_directories = sandbox->options.session.sysroot != NULL,
			.more_output = SS_MAX(sandbox->saved, 0),
		},
	};

	return ss_job_run(&job, ret);
}

/* The last resort: reads nothing that could be fatal. */
static struct ss_error *work_here(struct sandbox *sandbox)
{
	struct ss_sandbox_result *result = &sandbox->result->pub;

	*sandbox->page = (struct ss_worker_page){ .module = -1 };
	result->output = ss_io_create_unnamed();
	int errnum = errno;
	if (result->output < 0)
		return ss_error_new_errno(errnum, "cannot create a file for the output");
	result->messages = ss_io_create_unnamed();
	sandbox->attempt.pub.output = result->output;
	sandbox->attempt.pub.may_request = false;
	struct ss_error *error = sandbox->work(sandbox->data, &sandbox->attempt.pub);
	result->value = sandbox->page->value;
	return error;
}

static bool is_skipped(const struct sandbox *sandbox, int32_t module)
{
	return ss_any(sandbox->skip_count, i, sandbox->skips[i] == module);
}

static struct ss_sandbox_failure *add_failure(struct sandbox *sandbox)
{
	struct ss_sandbox_failure *failure =
		&sandbox->result->failures[sandbox->attempt.pub.failure_count++];

	failure->module = -1;
	sandbox->result->pub.failure_count = sandbox->attempt.pub.failure_count;
	return failure;
}

/* Decides what to leave out next. */
static void reduce_effort(struct sandbox *sandbox, const struct ss_job_outcome *outcome)
{
	struct ss_sandbox_attempt *attempt = &sandbox->attempt.pub;
	struct ss_sandbox_failure *failure = add_failure(sandbox);
	const int32_t module = sandbox->options.keep_modules ? -1 :
							       outcome->failure.module;

	*failure = outcome->failure;
	failure->module = -1;
	if (failure->cause == SS_SANDBOX_REFUSED)
		attempt->level = SS_SANDBOX_PLACES;
	else if (module >= 0 && sandbox->skip_count < SKIPS_MAX &&
		 !is_skipped(sandbox, module))
		sandbox->skips[sandbox->skip_count++] = failure->module = module;
	else if (failure->step == SS_SANDBOX_DIAGNOSE && !attempt->no_waits)
		attempt->no_waits = true;
	else
		attempt->level++;
}

static struct ss_error *answer(struct sandbox *sandbox, int fd)
{
	_cleanup_free_ void *bytes = malloc(REQUEST_MAX);
	ssize_t size = bytes ? ss_io_pread(fd, bytes, REQUEST_MAX, 0) : 0;

	if (!bytes)
		return ss_error_no_memory();
	if (size < 0)
		return ss_error_new_errno((int)-size, "cannot read the requests");
	sandbox->requests--;
	uint64_t begin_ns = ss_now_ns();
	sandbox->options.answer(sandbox->data, bytes, (size_t)size);
	sandbox->answer_ns += ss_now_ns() - begin_ns;
	return NULL;
}

static void set_result(struct sandbox *sandbox, struct ss_job_outcome *outcome)
{
	struct ss_sandbox_result *result = &sandbox->result->pub;

	result->output = take_fd(outcome->output);
	result->messages = take_fd(outcome->messages);
	result->value = outcome->page.value;
	result->partial = outcome->page.refused != 0;
}

/* A finding of a sanitizer must not be hidden by a retry: its report is in the messages. */
static bool is_final(const struct ss_job_outcome *outcome)
{
#if defined(__SANITIZE_ADDRESS__)
	enum { SANITIZER_STATUS = 99 };

	return outcome->failed && outcome->failure.cause == SS_SANDBOX_EXIT &&
	       outcome->failure.code == SANITIZER_STATUS;
#else
	(void)outcome;
	return false;
#endif
}

/* The next attempt would write as much, or a result that is of no use. */
static struct ss_error *check_output(const struct sandbox *sandbox,
				     const struct ss_job_outcome *outcome)
{
	uint64_t max = sandbox->options.max_output;

	if (!max || !outcome->failed || outcome->failure.cause != SS_SANDBOX_SIGNAL ||
	    outcome->failure.code != SIGXFSZ)
		return NULL;
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_SYSTEM, "the result is larger than %" PRIu64 " MiB",
			     max >> 20),
		"select less, or choose another format");
}

static struct ss_error *try_in_child(struct sandbox *sandbox, unsigned share_ms,
				     bool *ret_done)
{
	_cleanup_(ss_job_outcome_deinit) struct ss_job_outcome outcome =
		SS_JOB_NO_OUTCOME;
	_cleanup_close_ int saved = sandbox->options.cache ? ss_io_create_unnamed() : -1;

	sandbox->saved = saved; /* without one nothing is kept */
	sandbox->attempt.pub.may_request = sandbox->requests > 0;
	_cleanup_error_ struct ss_error *error = run_child(sandbox, share_ms, &outcome);
	if (error) {
		add_failure(sandbox)->cause = SS_SANDBOX_NO_CHILD;
		sandbox->attempt.pub.level = SS_SANDBOX_PLACES;
		return sandbox->options.last_level < SS_SANDBOX_PLACES ? take_ptr(error) :
									 NULL;
	}
	if (outcome.interrupted)
		return ss_error_new(SS_ERROR_INTERRUPTED, "the analysis was interrupted");
	error = check_output(sandbox, &outcome);
	if (error)
		return take_ptr(error);
	if (!outcome.failed && outcome.page.requests && sandbox->requests == 0) {
		outcome.failed = true; /* it was told, or has asked before */
		outcome.failure.cause = SS_SANDBOX_INVALID;
	}
	if (outcome.failed)
		reduce_effort(sandbox, &outcome);
	*ret_done = !outcome.failed || is_final(&outcome);
	if (outcome.failed && !*ret_done)
		return NULL;
	if (outcome.error)
		return take_ptr(outcome.error);
	if (!outcome.failed && outcome.page.requests) {
		*ret_done = false;
		return answer(sandbox, outcome.output);
	}
	if (saved >= 0 && !outcome.failed)
		ss_cache_store(sandbox->options.cache, saved);
	set_result(sandbox, &outcome);
	return NULL;
}

static struct ss_error *nothing_left(const struct sandbox *sandbox)
{
	const struct ss_sandbox_result *result = &sandbox->result->pub;
	char how[128] = "failed";

	if (result->failure_count)
		ss_sandbox_failure_describe(&result->failures[result->failure_count - 1],
					    how, sizeof(how));
	return ss_error_new(SS_ERROR_SYSTEM, "the analysis %s", how);
}

static struct ss_error *run(struct sandbox *sandbox)
{
	bool done = false;

	while (!done) {
		unsigned share_ms = SS_MAX(sandbox->left_ms / 2, (unsigned)SHARE_MIN_MS);
		uint64_t begin_ns = ss_now_ns();
		struct ss_error *error = NULL;
		if (sandbox->attempt.pub.level > sandbox->options.last_level)
			return nothing_left(sandbox);
		error = open_session(sandbox);
		if (error)
			return error;
		if (sandbox->attempt.pub.level >= SS_SANDBOX_PLACES)
			return work_here(sandbox);
		error = try_in_child(sandbox, share_ms, &done);
		if (error)
			return error;
		uint64_t spent_ns = ss_now_ns() - begin_ns - sandbox->answer_ns;
		sandbox->answer_ns = 0;
		sandbox->left_ms -= (unsigned)SS_MIN(spent_ns / SS_NS_PER_MS,
						     (uint64_t)sandbox->left_ms);
	}
	return NULL;
}

struct ss_error *ss_sandbox_run(const struct ss_sandbox_options *options,
				ss_sandbox_work *work, void *data,
				struct ss_sandbox_result **ret)
{
	_cleanup_(sandbox_deinit) struct sandbox sandbox = { .work = work, .data = data };

	if (!work)
		return ss_error_new(SS_ERROR_INVALID, "there is no work to run");
	struct ss_error *error = sandbox_init(&sandbox, options);
	if (!error)
		error = run(&sandbox);
	if (error)
		return error;
	sandbox.result->pub.level = sandbox.attempt.pub.level;
	sandbox.result->pub.no_waits = sandbox.attempt.pub.no_waits;
	*ret = &take_ptr(sandbox.result)->pub;
	return NULL;
}
