/*
 * stacksnap diff [OPTIONS] PID | RECORDING [RECORDING]: which threads moved between two
 * snapshots.
 */
#include <argp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vector.h"
#include "cli/command.h"
#include "cli/diff_analysis.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "report/diff.h"
#include "cli/target_options.h"
#include "cli/usage.h"
#include "capture/activity.h"
#include "diagnose/progress.h"
#include "interpret/interpret.h"

enum key { KEY_AFTER = 0x680 };

SS_DEFINE_CLEANUP(struct ss_progress, progress, ss_progress_free)

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

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Comparison:", -2 },
	{ "after", KEY_AFTER, "TIME", 0,
	  "Take the second snapshot of the process after TIME: 10s, 500ms (default: 2s)",
	  0 },
	{},
};

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
	_cleanup_(progress_cleanup) struct ss_progress *progress = NULL;
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
	struct ss_error *error = NULL;

	if (diff->options.symbols.debuginfod)
		error = ss_debuginfod_new(&diff->debuginfod);
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

	ss_reading_configure(&reading, NULL, &options);
	struct ss_error *error =
		capture_both(diff, &reading, &options, &source, &before, &after);
	if (!error)
		error = open_output(diff, ss_target_options_pid(&diff->target));
	reading.output = diff->output;
	reading.requests.debuginfod = diff->debuginfod;
	options.more_memory *= 2;
	options.tasks = options.goroutines = false; /* they were read */
	if (!error)
		error = compare_snapshots(&reading, source, &options, before, after,
					  missing);
	ss_activity_free(before);
	ss_activity_free(after);
	return error;
}

static struct ss_error *compare_files(struct diff *diff, bool *missing)
{
	struct ss_diff_analysis analysis = {};
	struct ss_error *error = NULL;

	for (size_t i = 0; i < diff->arguments.count && !error; i++)
		error = ss_report_files_open(&analysis.files, diff->arguments.items[i]);
	if (!error)
		error = open_output(diff, 0);
	analysis.options = &diff->options;
	analysis.output = diff->output;
	analysis.requests.debuginfod = diff->debuginfod;
	if (!error)
		error = ss_diff_analysis_run(&analysis, missing);
	ss_diff_analysis_deinit(&analysis);
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
	if (error) {
		ss_failure_print(error);
		return SS_STATUS_NOTHING;
	}
	return missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

/* One argument is a recording if there is such a file. */
static bool is_process(const struct diff *diff)
{
	return ss_target_options_count(&diff->target) > 0 || diff->after_ns ||
	       (diff->arguments.count == 1 &&
		access(diff->arguments.items[0], F_OK) != 0);
}

static void check(struct diff *diff, const struct argp_state *state)
{
	const struct ss_selection *selection = &diff->options.selection;

	if (is_process(diff)) {
		for (size_t i = 0; i < diff->arguments.count; i++)
			ss_target_options_add(state, &diff->target,
					      diff->arguments.items[i]);
		ss_target_options_require(state, &diff->target);
	} else if (diff->arguments.count == 0 || diff->arguments.count > 2) {
		ss_usage_fail(state, "expected a process, or one or two recordings");
	}
	if (selection->tids.count || selection->states || selection->patterns.count)
		ss_usage_fail(state,
			      "--thread and --state cannot be used: all threads are "
			      "compared");
	if (diff->options.native && !is_process(diff))
		ss_usage_fail(state, "--native cannot be used with recordings");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct diff *diff = state->input;
	const char **slot;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &diff->options;
		state->child_inputs[1] = &diff->target;
		return 0;
	case KEY_AFTER:
		diff->after_ns = ss_options_parse_duration(state, "after", arg);
		return 0;
	case ARGP_KEY_ARG:
		slot = ss_vector_push(&diff->arguments);
		if (!slot)
			ss_usage_fail(state, "out of memory");
		else
			*slot = arg;
		return 0;
	case ARGP_KEY_END:
		check(diff, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &ss_options_argp, 0, NULL, 0 },
	{ &ss_target_argp, 0, NULL, 0 },
	{},
};

static const struct argp argp = {
	.options = table,
	.parser = parse,
	.args_doc = "PID|NAME\nRECORDING [RECORDING]",
	.doc = "Compare two snapshots thread by thread: which are unchanged, moved, new "
	       "or "
	       "gone. "
	       "The snapshots are those of a process now and a while later, the last "
	       "ones "
	       "of two recordings, or the first and the last one of a recording.\v"
	       "Exit status: 0 complete, 1 something is missing, 2 nothing could be "
	       "compared, 64 wrong usage.",
	.children = children,
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
	.argp = &argp,
	.run = run,
};
