/* The retry policy of the sandbox: what is left out after which failure, how often, and
   what the caller gets to know. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "data/pipeline.h"
#include "data/session.h"
#include "sandbox/worker.h"
#include "sandbox/sandbox.h"

/* A job that fails as it is told to. */
struct job {
	int32_t fatal_modules[8]; /* that kill the child unless they are skipped */
	size_t fatal_count;
	bool fatal_waits;
	bool fatal_names;
	bool fatal_raw;
	bool hangs; /* if it looks up names */
	unsigned answers;
	char answer[64];
};

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct job *job = data;
	const struct ss_session *session = attempt->session;

	if (attempt->level == SS_SANDBOX_PLACES) {
		(void)dprintf(attempt->output, "places, %zu failures",
			      attempt->failure_count);
		return NULL;
	}
	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	if (job->fatal_raw)
		_exit(7);
	if (attempt->level == SS_SANDBOX_NAMES) {
		ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
		for (size_t i = 0; i < job->fatal_count; i++) {
			ss_session_note(session, job->fatal_modules[i]);
			if (!ss_session_skips(session, job->fatal_modules[i]))
				_exit(7);
		}
		ss_session_note(session, -1);
		while (job->hangs)
			;
		if (job->fatal_names)
			_exit(7);
	}
	ss_sandbox_enter(attempt, SS_SANDBOX_DIAGNOSE);
	if (job->fatal_waits && !attempt->no_waits)
		_exit(7);
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	ss_sandbox_set_value(attempt, 5);
	(void)dprintf(attempt->output, "%s, %zu failures",
		      attempt->level == SS_SANDBOX_NAMES ? "names" : "raw",
		      attempt->failure_count);
	return NULL;
}

static struct ss_sandbox_result *run(struct job *job, struct ss_sandbox_options options)
{
	struct ss_sandbox_result *result = NULL;

	options.size = sizeof(options);
	assert_null(ss_sandbox_run(&options, work, job, &result));
	return result;
}

static void assert_output(const struct ss_sandbox_result *result, const char *expected)
{
	char text[256] = "";

	assert_true(ss_io_pread(result->output, text, sizeof(text) - 1, 0) >= 0);
	assert_string_equal(text, expected);
}

static void assert_failure(const struct ss_sandbox_result *result, size_t index,
			   enum ss_sandbox_step step, int32_t module)
{
	assert_true(index < result->failure_count);
	assert_int_equal(result->failures[index].cause, SS_SANDBOX_EXIT);
	assert_int_equal(result->failures[index].code, 7);
	assert_int_equal(result->failures[index].step, step);
	assert_int_equal(result->failures[index].module, module);
}

TEST(succeeds_at_once)
{
	struct job job = {};
	struct ss_sandbox_result *result = run(&job, (struct ss_sandbox_options){});

	assert_output(result, "names, 0 failures");
	assert_int_equal(result->level, SS_SANDBOX_NAMES);
	assert_int_equal(result->value, 5);
	assert_int_equal(result->failure_count, 0);
	assert_false(result->no_waits);
	ss_sandbox_result_free(result);
}

TEST(skips_modules)
{
	struct job job = { .fatal_modules = { 4, 9 }, .fatal_count = 2 };
	struct ss_sandbox_result *result = run(&job, (struct ss_sandbox_options){});

	assert_output(result, "names, 2 failures");
	assert_failure(result, 0, SS_SANDBOX_SYMBOLIZE, 4);
	assert_failure(result, 1, SS_SANDBOX_SYMBOLIZE, 9);
	ss_sandbox_result_free(result);
}

TEST(gives_up_names_after_three_modules)
{
	struct job job = { .fatal_modules = { 1, 2, 3, 4 }, .fatal_count = 4 };
	struct ss_sandbox_result *result = run(&job, (struct ss_sandbox_options){});

	assert_output(result, "raw, 4 failures");
	assert_failure(result, 3, SS_SANDBOX_SYMBOLIZE, -1);
	assert_int_equal(result->level, SS_SANDBOX_RAW);
	ss_sandbox_result_free(result);
}

TEST(keeps_modules_if_told)
{
	struct job job = { .fatal_modules = { 1 }, .fatal_count = 1 };
	struct ss_sandbox_result *result =
		run(&job, (struct ss_sandbox_options){ .keep_modules = true });

	assert_output(result, "raw, 1 failures");
	ss_sandbox_result_free(result);
}

TEST(skips_waits)
{
	struct job job = { .fatal_waits = true };
	struct ss_sandbox_result *result = run(&job, (struct ss_sandbox_options){});

	assert_output(result, "names, 1 failures");
	assert_true(result->no_waits);
	ss_sandbox_result_free(result);
}

TEST(lowers_the_level)
{
	struct job job = { .fatal_names = true };
	struct ss_sandbox_result *result = run(&job, (struct ss_sandbox_options){});

	assert_output(result, "raw, 1 failures");
	ss_sandbox_result_free(result);
	job.fatal_raw = true;
	result = run(&job, (struct ss_sandbox_options){});
	assert_output(result, "places, 2 failures");
	assert_int_equal(result->level, SS_SANDBOX_PLACES);
	ss_sandbox_result_free(result);
}

TEST(survives_every_failure_at_once)
{
	struct job job = { .fatal_modules = { 1, 2, 3, 4 },
			   .fatal_count = 4,
			   .fatal_waits = true,
			   .fatal_names = true };
	struct ss_sandbox_result *result = run(&job, (struct ss_sandbox_options){});

	assert_output(result, "raw, 5 failures");
	ss_sandbox_result_free(result);
}

TEST(stops_at_the_last_level)
{
	const struct ss_sandbox_options options = { .size = sizeof(options),
						    .last_level = SS_SANDBOX_RAW };
	struct job job = { .fatal_raw = true };
	struct ss_sandbox_result *result = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_sandbox_run(&options, work, &job, &result);

	assert_int_equal(ss_error_code(error), SS_ERROR_SYSTEM);
	assert_string_equal(ss_error_message(error),
			    "the analysis exited with status 7 during unwinding");
	assert_null(result);
}

TEST(kills_what_hangs)
{
	struct job job = { .hangs = true };
	struct ss_sandbox_result *result =
		run(&job, (struct ss_sandbox_options){ .timeout_ms = 400 });
	char text[128];

	assert_output(result, "raw, 1 failures");
	assert_int_equal(result->failures[0].cause, SS_SANDBOX_TIMEOUT);
	ss_sandbox_failure_describe(&result->failures[0], text, sizeof(text));
	assert_string_equal(text, "timed out during symbolization");
	ss_sandbox_result_free(result);
}

static bool stop_at_the_third_call(void *data)
{
	struct job *job = data;

	return ++job->answers == 3;
}

TEST(is_interrupted)
{
	const struct ss_sandbox_options options = { .size = sizeof(options),
						    .stop = stop_at_the_third_call };
	struct job job = { .hangs = true };
	struct ss_sandbox_result *result = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_sandbox_run(&options, work, &job, &result);

	assert_int_equal(ss_error_code(error), SS_ERROR_INTERRUPTED);
	assert_int_equal(job.answers, 3); /* there was no second attempt */
	assert_null(result);
	/* Nothing hangs: it is not called, or does not matter. */
	job = (struct job){};
	result = run(&job, options);
	assert_output(result, "names, 0 failures");
	ss_sandbox_result_free(result);
}

static struct ss_error *refuse(void *data, const struct ss_sandbox_attempt *attempt)
{
	(void)data;
	(void)attempt;
	return ss_error_new(SS_ERROR_NO_PROCESS, "it is gone");
}

TEST(returns_the_error_of_work)
{
	struct ss_sandbox_result *result = NULL;
	_cleanup_error_ struct ss_error *error =
		ss_sandbox_run(NULL, refuse, NULL, &result);

	assert_int_equal(ss_error_code(error), SS_ERROR_NO_PROCESS);
	assert_null(result);
}

/* Asks until it is told "three", and as long as it may. */
static struct ss_error *ask(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct job *job = data;

	if (job->answers < 3 && attempt->may_request)
		return ss_sandbox_request(attempt, "more", 4);
	if (!attempt->may_request) {
		_cleanup_error_ struct ss_error *error =
			ss_sandbox_request(attempt, "more", 4);
		if (ss_error_code(error) != SS_ERROR_INVALID)
			return ss_error_new(SS_ERROR_SYSTEM, "an excess request");
	}
	(void)dprintf(attempt->output, "%s", job->answer);
	return NULL;
}

static void answer(void *data, const void *bytes, size_t size)
{
	struct job *job = data;

	job->answers++;
	(void)snprintf(job->answer, sizeof(job->answer), "%u times %.*s", job->answers,
		       (int)size, (const char *)bytes);
}

/* In one child: its work is called once, and sees the answers. */
static struct ss_error *ask_again_and_again(void *data,
					    const struct ss_sandbox_attempt *attempt)
{
	struct job *job = data;
	static char large[SS_SANDBOX_ASK_MAX + 1];
	char text[32] = "";

	job->answers += 100; /* of this child: a second one would not see it */
	for (unsigned i = 0; i < 3; i++) {
		size_t size = ss_sandbox_ask(attempt, "more", 4, text, sizeof(text));
		(void)dprintf(attempt->output, "%.*s;", (int)size, text);
	}
	(void)dprintf(attempt->output, "%zu;%u",
		      ss_sandbox_ask(attempt, large, sizeof(large), text, sizeof(text)),
		      job->answers);
	return NULL;
}

static size_t answer_at_once(void *data, const void *bytes, size_t size, void *ret,
			     size_t max)
{
	struct job *job = data;

	answer(data, bytes, size);
	size_t length = SS_MIN(strlen(job->answer), max);
	memcpy(ret, job->answer, length);
	return length;
}

static void assert_answers(ss_sandbox_work *asks, unsigned max, const char *expected)
{
	const struct ss_sandbox_options options = { .size = sizeof(options),
						    .answer = answer,
						    .ask = answer_at_once,
						    .max_requests = max };
	struct ss_sandbox_result *result = NULL;
	struct job job = {};

	assert_null(ss_sandbox_run(&options, asks, &job, &result));
	assert_output(result, expected);
	ss_sandbox_result_free(result);
}

TEST(answers_requests)
{
	assert_answers(ask, 10, "3 times more");
	assert_answers(ask, 2, "2 times more");
	assert_answers(ask, 0, "");
}

TEST(answers_while_the_child_waits)
{
	assert_answers(ask_again_and_again, 10,
		       "1 times more;2 times more;3 times more;0;100");
	assert_answers(ask_again_and_again, 2, "1 times more;2 times more;;0;100");
	assert_answers(ask_again_and_again, 0, ";;;0;100");
}

TEST(describes_failures)
{
	static const struct {
		struct ss_sandbox_failure failure;
		const char *text;
	} cases[] = {
		{ { SS_SANDBOX_SIGNAL, SIGSEGV, SS_SANDBOX_UNWIND, -1 },
		  "crashed (SIGSEGV) during unwinding" },
		{ { SS_SANDBOX_SIGNAL, 77, SS_SANDBOX_OUTPUT, -1 },
		  "was killed by signal 77 during output" },
		{ { SS_SANDBOX_MEMORY, 0, SS_SANDBOX_DIAGNOSE, -1 },
		  "ran out of memory during wait analysis" },
		{ { SS_SANDBOX_NO_CHILD, 0, SS_SANDBOX_UNWIND, -1 },
		  "could not be started" },
	};
	char text[128];

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		ss_sandbox_failure_describe(&cases[i].failure, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
	ss_sandbox_failure_describe(&cases[0].failure, text, 8);
	assert_string_equal(text, "crashed");
}

TEST(leaves_no_child)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}
