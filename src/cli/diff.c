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
#include "cli/series_capture.h"
#include "cli/target_options.h"
#include "cli/usage.h"

enum key { KEY_AFTER = 0x680 };

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

static struct ss_error *run_analysis(struct diff *diff, struct ss_diff_analysis *analysis,
				     bool *missing)
{
	struct ss_error *error = NULL;
	pid_t pid = analysis->captures ? ss_target_options_pid(&diff->target) : 0;

	if (diff->options.symbols.debuginfod)
		error = ss_debuginfod_new(&diff->debuginfod);
	if (!error)
		error = ss_output_open(diff->options.common.output, pid, &diff->output);
	if (error)
		return error;
	analysis->options = &diff->options;
	analysis->output = diff->output;
	analysis->requests.debuginfod = diff->debuginfod;
	return ss_diff_analysis_run(analysis, missing);
}

static struct ss_error *capture_both(struct diff *diff, struct ss_series_capture *series,
				     struct ss_activity **before,
				     struct ss_activity **after)
{
	struct ss_error *error = ss_series_capture_take(series);

	if (!error)
		error = ss_activity_take(series->job.target, before);
	if (error)
		return error;
	ss_sleep_ns(diff->after_ns ? diff->after_ns : AFTER_DEFAULT);
	error = ss_activity_take(series->job.target, after);
	if (!error)
		error = ss_series_capture_take(series);
	if (!error)
		ss_capture_add_related(series->captures.items[1], series->job.target);
	return error;
}

static struct ss_error *compare_process(struct diff *diff, bool *missing)
{
	static const struct ss_selection all;
	const struct ss_selection_run run = {
		.selection = &all, .argument = &diff->target.targets.items[0]
	};
	__attribute__((
		cleanup(ss_series_capture_deinit))) struct ss_series_capture series = {
		.options = &diff->options,
		.selection = &run,
		.tasks = diff->options.tasks > 0,
	};
	struct ss_activity *before = NULL;
	struct ss_activity *after = NULL;
	struct ss_error *error = capture_both(diff, &series, &before, &after);
	struct ss_diff_analysis analysis = {
		.captures = series.captures.items,
		.before = before,
		.after = after,
		.owner = series.job.analysis.owner,
	};

	if (!error)
		error = run_analysis(diff, &analysis, missing);
	ss_diff_analysis_deinit(&analysis);
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
		error = run_analysis(diff, &analysis, missing);
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
	.summary = "compare two snapshots thread by thread",
	.argp = &argp,
	.run = run,
};
