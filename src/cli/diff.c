/*
 * stacksnap diff [OPTIONS] PID | RECORDING [RECORDING]: which threads moved between two
 * snapshots.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "stacksnap/record.h"
#include "sandbox/sandbox.h"
#include "data/recording.h"
#include "base/clock.h"
#include "base/vector.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/report.h"
#include "report/diff.h"
#include "report/names.h"
#include "cli/targets.h"
#include "data/pipeline.h"
#include "diagnose/progress.h"
#include "interpret/interpret.h"

#define AFTER_DEFAULT (2 * SS_NS_PER_SECOND)

struct diff {
	struct ss_options options;
	struct ss_target_options target;
	SS_VECTOR(const char *) arguments;
	uint64_t after_ns; /* 0: not given */
	struct ss_output *output;
	struct ss_debuginfod *debuginfod; /* or NULL */
};

static void diff_deinit(struct diff *diff)
{
	ss_output_close(diff->output);
	ss_debuginfod_free(diff->debuginfod);
	ss_target_options_deinit(&diff->target);
	ss_vector_free(&diff->arguments);
	ss_options_deinit(&diff->options);
}

static struct ss_error *capture_both(struct diff *diff, struct ss_reading *reading,
				     struct ss_interpret_options *options,
				     struct ss_process_source **ret,
				     struct ss_activity **before,
				     struct ss_activity **after)
{
	static const struct ss_selection all;
	struct ss_selection_run run = { .selection = &all,
					.argument = &diff->target.targets.items[0] };
	struct ss_error *error = ss_reading_begin_series(reading, &run, options, ret);

	if (!error)
		error = ss_activity_take(ss_process_source_target(*ret), before);
	if (error)
		return error;
	ss_sleep_ns(diff->after_ns ? diff->after_ns : AFTER_DEFAULT);
	error = ss_activity_take(ss_process_source_target(*ret), after);
	if (!error)
		error = ss_process_source_take(*ret, options);
	if (!error)
		ss_process_source_end_series(*ret);
	return error;
}

static struct ss_error *compare_snapshots(struct ss_reading *reading,
					  struct ss_process_source *source,
					  const struct ss_interpret_options *options,
					  const struct ss_activity *before,
					  const struct ss_activity *after, bool *missing)
{
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	_cleanup_(ss_progress_cleanup) struct ss_progress *progress = NULL;
	FILE *out = NULL;
	struct ss_error *error = ss_reading_interpret(
		reading, ss_process_source_all(source), options, &result);

	if (!error)
		error = ss_progress_new(
			before, after,
			(const struct ss_snapshot *const *)result->snapshots,
			result->count, &progress);
	if (!error)
		error = ss_reading_open(&out);
	if (error)
		return error;
	const struct ss_format_options format_options =
		ss_reading_format_options(reading, result);
	const struct ss_diff_input input = {
		.before.snapshot = result->snapshots[0],
		.after.snapshot = result->snapshots[1],
		.progress = progress,
	};
	error = reading->options->common.format->write_diff(&input, &format_options, out);
	error = ss_reading_close(reading, out, error);
	if (!error)
		*missing = ss_reading_report(
			reading, (const struct ss_snapshot *const *)result->snapshots,
			result->count, result->problem, NULL);
	return error;
}

static struct ss_error *open_output(struct diff *diff, pid_t pid)
{
	struct ss_error *error =
		ss_debuginfod_open(&diff->options.symbols, &diff->debuginfod);

	return error ? error :
		       ss_output_open(diff->options.common.output, pid, &diff->output);
}

static struct ss_error *compare_process(struct diff *diff, bool *missing)
{
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = &diff->options,
		.color = ss_options_want_color(&diff->options.common),
	};
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source = NULL;
	struct ss_interpret_options options;
	struct ss_activity *before = NULL;
	struct ss_activity *after = NULL;

	ss_reading_configure(&reading, &options);
	struct ss_error *error = open_output(diff, ss_target_options_pid(&diff->target));
	reading.output = diff->output;
	reading.requests.debuginfod = diff->debuginfod;
	if (!error)
		error = capture_both(diff, &reading, &options, &source, &before, &after);
	options.more_memory *= 2;
	options.tasks = options.goroutines = false; /* they were read */
	if (!error)
		error = compare_snapshots(&reading, source, &options, before, after,
					  missing);
	ss_activity_free(before);
	ss_activity_free(after);
	return error;
}

/* Recordings, in the sandbox ---------------------------------------------------- */

enum { SIDES = 2 };

struct comparison {
	const struct ss_options *options;
	/* One, whose first and last tick are compared, or two. */
	struct ss_report_files files;
	struct ss_file_requests requests;
	bool privileged; /* the caller is root; the sandbox may not be */
};

static void comparison_deinit(struct comparison *comparison)
{
	ss_report_files_deinit(&comparison->files);
	ss_file_requests_deinit(&comparison->requests);
}

/* An attempt. */
struct attempt {
	const struct comparison *comparison;
	const struct ss_sandbox_attempt *sandbox;
	struct ss_snapshot *snapshots[SIDES];
	const char *files[SIDES];
	struct ss_recording *recordings[SIDES];
	bool missing; /* a part of a recording */
};

static void attempt_deinit(struct attempt *attempt)
{
	for (size_t i = 0; i < SIDES; i++) {
		ss_snapshot_free(attempt->snapshots[i]);
		ss_recording_close(attempt->recordings[i]);
	}
}

/* A tick and a process that has a sample then. */
struct moment {
	uint64_t tick;
	uint32_t process;
	bool found;
};

/* The first or the last tick of a recording. */
static struct moment find_moment(struct ss_recording *recording, bool last)
{
	struct moment moment = {};
	struct ss_sample sample;

	ss_recording_rewind(recording);
	while ((last || !moment.found) && ss_recording_next(recording, &sample)) {
		if (!moment.found || sample.tick > moment.tick)
			moment = (struct moment){ sample.tick, sample.process, true };
	}
	return moment;
}

static struct ss_error *open_recording(struct attempt *attempt, size_t side,
				       const struct ss_report_file *file)
{
	const struct ss_sandbox_attempt *sandbox = attempt->sandbox;
	const struct ss_recording_part part = { file->offset, file->size, 0 };
	_cleanup_close_ int fd =
		ss_report_files_duplicate(&attempt->comparison->files, file);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot read '%s'", file->path);
	_cleanup_error_ struct ss_error *error =
		ss_recording_open_part(take_fd(fd), &part, &attempt->recordings[side]);
	if (error)
		return ss_error_new(ss_error_code(error), "'%s': %s", file->path,
				    ss_error_message(error));
	attempt->files[side] = file->path;
	ss_sandbox_enter(sandbox, SS_SANDBOX_SYMBOLIZE);
	return sandbox->level == SS_SANDBOX_NAMES ?
		       ss_recording_symbolize(
			       attempt->recordings[side], sandbox->session,
			       attempt->comparison->options->symbols.flags) :
		       NULL;
}

static struct ss_error *read_side(struct attempt *attempt, size_t side)
{
	const struct ss_report_files *files = &attempt->comparison->files;
	size_t index = SS_MIN(side, files->items.count - 1);
	const struct ss_report_file *file = &files->items.items[index];
	bool last = side > 0 || files->items.count > 1;
	struct ss_error *error = open_recording(attempt, side, file);

	if (error)
		return error;
	struct ss_recording *recording = attempt->recordings[side];
	struct moment moment = find_moment(recording, last);
	const struct ss_recording_info *info = ss_recording_info(recording);
	if (info->problem)
		ss_failure_warn("%s: %s", file->path, info->problem);
	attempt->missing |= info->problem != NULL;
	if (!moment.found)
		return ss_error_new(SS_ERROR_INVALID, "'%s' has no samples", file->path);
	if (side > 0 && files->items.count == 1 &&
	    moment.tick == find_moment(recording, false).tick)
		return ss_error_with_remedy(ss_error_new(SS_ERROR_INVALID,
							 "'%s' has only one snapshot",
							 file->path),
					    "name a second recording to compare it with");
	return ss_recording_snapshot(recording, moment.tick, moment.process,
				     &attempt->snapshots[side]);
}

static struct ss_diff_side side_of(const struct attempt *attempt, size_t side)
{
	return (struct ss_diff_side){
		.snapshot = attempt->snapshots[side],
		.file = attempt->files[side],
	};
}

static struct ss_error *print(const struct attempt *attempt, const char *problem)
{
	const struct ss_options *options = attempt->comparison->options;
	bool names = attempt->sandbox->level == SS_SANDBOX_NAMES;
	bool text = options->common.format == &ss_format_text;
	const struct ss_diff_input input = {
		.before = side_of(attempt, 0),
		.after = side_of(attempt, 1),
	};
	_cleanup_free_ char *advice =
		text && names && !options->symbols.raw ?
			ss_reading_advice(options, attempt->comparison->privileged,
					  attempt->snapshots[1],
					  attempt->sandbox->session) :
			NULL;
	const struct ss_format_options format_options = {
		.size = sizeof(format_options),
		.raw = !names,
		.all = options->all,
		.verbose = options->common.verbose,
		.color = ss_options_want_color(&options->common),
		.groups = { [SS_TASK_GOROUTINE] = options->goroutines,
			    [SS_TASK_ASYNCIO] = options->tasks },
		.max_stack = options->common.max_stack,
		.problem = problem,
		.advice = advice,
	};
	FILE *out = NULL;

	ss_sandbox_enter(attempt->sandbox, SS_SANDBOX_OUTPUT);
	struct ss_error *error = ss_stream_open(attempt->sandbox->output, &out);
	if (error)
		return error;
	error = options->common.format->write_diff(&input, &format_options, out);
	/* cppcheck-suppress returnDanglingLifetime; the error does not refer to the options */
	return ss_stream_close(out, error);
}

static bool report_missing(const struct attempt *attempt, const char *problem)
{
	size_t incomplete = 0;

	for (size_t i = 0; i < SIDES; i++)
		incomplete += ss_missing_count(attempt->snapshots[i],
					       attempt->comparison->options->strict);
	if (problem)
		ss_failure_warn("%s", problem);
	if (incomplete)
		ss_failure_warn("%zu stack%s incomplete%s", incomplete,
				incomplete == 1 ? " is" : "s are",
				attempt->comparison->options->common.verbose ?
					"" :
					" (-v shows them)");
	return incomplete > 0 || problem || attempt->missing;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *sandbox)
{
	const struct comparison *comparison = data;
	__attribute__((cleanup(attempt_deinit))) struct attempt attempt = {
		.comparison = comparison, .sandbox = sandbox
	};
	struct ss_error *error = NULL;
	bool requested = false;

	for (size_t i = 0; i < SIDES && !error; i++)
		error = read_side(&attempt, i);
	if (!error)
		error = ss_file_requests_send(&comparison->requests, sandbox, &requested);
	if (error || requested)
		return error;
	_cleanup_free_ char *problem = ss_interpret_problem(
		sandbox, comparison->options->symbols.raw, NULL, NULL);
	error = print(&attempt, problem);
	if (!error)
		ss_sandbox_set_value(sandbox, report_missing(&attempt, problem));
	return error;
}

/* In the caller ------------------------------------------------------------------ */

static struct ss_error *compare_files(struct diff *diff, bool *missing)
{
	_cleanup_(comparison_deinit) struct comparison comparison = {
		.options = &diff->options,
		.privileged = geteuid() == 0,
	};
	struct ss_interpret_options options = ss_work_options(
		&diff->options.symbols, &comparison.requests, &comparison);
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	struct ss_error *error = NULL;

	for (size_t i = 0; i < diff->arguments.count && !error; i++)
		error = ss_report_files_open(&comparison.files, diff->arguments.items[i]);
	if (!error)
		error = open_output(diff, 0);
	comparison.requests.debuginfod = diff->debuginfod;
	options.keep_modules = true; /* their indexes are those of one recording */
	options.timeout_ms = diff->options.interpret_ms;
	options.more_memory = ss_options_max_total(&diff->options) * SIDES;
	if (!error)
		error = ss_work_run(&options, work, &result);
	if (!error)
		error = ss_work_copy(result, &diff->options.common,
				     ss_options_want_color(&diff->options.common),
				     diff->output);
	if (!error)
		*missing = result->value != 0;
	return error;
}

static int diff_run(struct diff *diff)
{
	bool missing = false;
	bool live = ss_target_options_count(&diff->target) > 0;

	if (live && !ss_target_options_resolve(&diff->target))
		return SS_STATUS_NOTHING;
	_cleanup_error_ struct ss_error *error = live ? compare_process(diff, &missing) :
							compare_files(diff, &missing);
	return ss_failure_status(error, missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE);
}

/* One argument is a recording if there is such a file. */
static bool is_process(const struct diff *diff)
{
	return ss_target_options_count(&diff->target) > 0 || diff->after_ns ||
	       (diff->arguments.count == 1 &&
		access(diff->arguments.items[0], F_OK) != 0);
}

static void check(void *input)
{
	struct diff *diff = input;
	const char *const *words = diff->arguments.items;

	if (diff->arguments.count == 2 && ss_number_is_digits(words[0]) &&
	    ss_number_is_digits(words[1]) && access(words[0], F_OK) != 0)
		ss_usage_fail_hint(
			"diff PID takes two snapshots of one process; snap PID "
			"PID shows both",
			"two processes cannot be compared");
	if (is_process(diff)) {
		for (size_t i = 0; i < diff->arguments.count; i++)
			ss_target_options_add(&diff->target, diff->arguments.items[i]);
		ss_target_options_require(&diff->target);
	} else if (diff->arguments.count == 0 || diff->arguments.count > 2) {
		ss_usage_fail("expected a process, or one or two recordings");
	}
	if (diff->options.native && !is_process(diff))
		ss_usage_fail("--native cannot be used with recordings");
}

static bool take_argument(void *input, char **argv, bool quoted)
{
	struct diff *diff = input;

	(void)quoted;
	ss_argument_add(ss_vector_push(&diff->arguments), *argv);
	return false;
}

static const struct ss_option table[] = {
	{ .doc = "Comparison:", .group = -2 },
	{ "after", 0, "TIME",
	  "Take the second snapshot of the process after TIME: 10s, 500ms (default: 2s)",
	  0, SS_SETS_DURATION(struct diff, after_ns) },
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_options_group, offsetof(struct diff, options) },
	{ &ss_target_group, offsetof(struct diff, target) },
	{ &ss_waits_group, offsetof(struct diff, options) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME\nRECORDING [RECORDING]",
	.doc = "Compare two snapshots, and report which threads are unchanged, moved, "
	       "new or gone. The snapshots are those of a process now and after --after, "
	       "the last ones of two recordings, or the first and last one of a "
	       "recording.\vExit status: 0 complete, 1 something is missing, 2 nothing "
	       "could be compared, 64 wrong usage.",
	.argument = take_argument,
	.end = check,
};

static int run(int argc, char **argv)
{
	_cleanup_(diff_deinit) struct diff diff = { .target.single = true };

	ss_options_init(&diff.options);
	diff.options.common.input = SS_FORMAT_DIFF;
	if (!ss_usage_parse(&ss_command_diff, argc, argv, 0, &diff))
		return SS_STATUS_NOTHING;
	ss_options_open_cache(&diff.options);
	return diff_run(&diff);
}

const struct ss_command ss_command_diff = {
	.name = "diff",
	.input = SS_FORMAT_DIFF,
	.summary = "compare two snapshots thread by thread",
	.options = &group,
	.run = run,
};
