/*
 * stacksnap [snap] [OPTIONS] PID[/TID,TID...]...: one snapshot of each process.
 */
#include <argp.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/series.h"
#include "cli/snap_processes.h"
#include "cli/target_options.h"
#include "cli/usage.h"
#include "interpret/interpret.h"

struct snap {
	struct ss_options options;
	struct ss_target_options targets;
	struct ss_output *output;	  /* for all targets, or for the current one */
	struct ss_debuginfod *debuginfod; /* or NULL */
	struct ss_series_options series;
	size_t printed; /* targets */
	size_t shown;	/* targets with stacks */
	size_t missing; /* targets with anything missing */
};

static void snap_deinit(struct snap *snap)
{
	ss_target_options_deinit(&snap->targets);
	ss_output_close(snap->output);
	ss_debuginfod_free(snap->debuginfod);
	ss_options_deinit(&snap->options);
}

static struct ss_error *show(struct snap *snap, struct ss_selection_run *run)
{
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = &snap->options,
		.requests.debuginfod = snap->debuginfod,
		.run = run,
		.output = snap->output,
		.separate = snap->printed > 0 &&
			    !ss_output_is_per_target(snap->options.common.output),
		.color = ss_options_want_color(&snap->options.common),
	};
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source = NULL;
	struct ss_interpret_options options;
	bool missing = false;

	ss_reading_configure(&reading, &options);
	struct ss_error *error = ss_reading_capture(&reading, run, true, &source);
	if (error)
		return error;
	ss_interpret_as_owner(ss_process_source_target(source), &options);
	error = ss_reading_show(&reading, ss_process_source_last(source), &options,
				&missing);
	if (error)
		return error;
	snap->printed++;
	snap->shown += !ss_process_source_refusal(source);
	snap->missing += missing;
	return NULL;
}

static struct ss_error *show_series(struct snap *snap, struct ss_selection_run *run)
{
	struct ss_series series = { .options = &snap->options,
				    .series = &snap->series,
				    .run = run,
				    .debuginfod = snap->debuginfod,
				    .output = snap->output };
	bool missing = false;
	struct ss_error *error = ss_series_run(&series, &missing);

	if (error)
		return error;
	snap->shown++;
	snap->missing += missing;
	return NULL;
}

/* So that a process that was selected is missing nowhere. */
static void write_failure(struct snap *snap, pid_t pid, const struct ss_error *error)
{
	__attribute__((cleanup(ss_row_source_deinit))) struct ss_row_source source;
	struct utsname names;

	ss_row_source_init(&source, &snap->options.common.rows);
	ss_rows_write_failure(&source.options, uname(&names) == 0 ? names.nodename : NULL,
			      pid, ss_clock_ns(CLOCK_REALTIME), ss_error_message(error),
			      ss_output_file(snap->output));
}

static struct ss_error *run_target(struct snap *snap,
				   const struct ss_target_argument *argument)
{
	struct ss_selection_run run = { .selection = &snap->options.selection,
					.argument = argument };
	const char *pattern = snap->options.common.output;
	struct ss_error *error = NULL;

	if (!snap->output)
		error = ss_output_open(pattern, argument->pid, &snap->output);
	if (!error)
		error = snap->series.period_ns ? show_series(snap, &run) :
						 show(snap, &run);
	if (error && snap->output && snap->options.common.format == &ss_format_rows)
		write_failure(snap, argument->pid, error);
	if (ss_output_is_per_target(pattern))
		ss_output_close(take_ptr(snap->output));
	return error;
}

/* A pattern or a cgroup may have selected several. */
static bool is_one_if_needed(const struct snap *snap)
{
	const struct ss_common_options *common = &snap->options.common;
	size_t count = snap->targets.targets.count;

	if (count == 1)
		return true;
	if (snap->series.period_ns)
		ss_failure_warn("--interval and --count work on one process, and %zu are "
				"selected",
				count);
	else if (common->format->single && !ss_output_is_per_target(common->output))
		ss_failure_warn("--format=%s holds one process per file, and %zu are "
				"selected: use -o FILE%%p",
				common->format->name, count);
	else
		return true;
	return false;
}

static int status_of(const struct snap *snap)
{
	if (snap->shown == 0)
		return SS_STATUS_NOTHING;
	return snap->missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

static bool is_merged(const struct snap *snap)
{
	const struct ss_options *o = &snap->options;
	/* Each process has its own. */
	bool lists = (o->tasks_given && o->tasks) ||
		     (o->goroutines_given && o->goroutines);

	return snap->targets.targets.count > 1 && !o->no_group && !lists &&
	       snap->options.common.format->write_processes &&
	       !ss_output_is_per_target(snap->options.common.output);
}

static int run_merged(struct snap *snap)
{
	struct ss_snap_processes processes = {
		.options = &snap->options,
		.targets = snap->targets.targets.items,
		.count = snap->targets.targets.count,
		.debuginfod = snap->debuginfod,
	};
	_cleanup_error_ struct ss_error *error =
		ss_output_open(snap->options.common.output, 0, &snap->output);

	processes.output = snap->output;
	if (!error)
		error = ss_snap_processes_run(&processes);
	snap->shown += processes.shown;
	snap->missing += processes.missing;
	if (error) {
		ss_failure_print(error);
		snap->missing++;
	}
	return status_of(snap);
}

static int run_targets(struct snap *snap)
{
	if (!ss_target_options_resolve(&snap->targets))
		return SS_STATUS_NOTHING;
	_cleanup_error_ struct ss_error *failure =
		ss_debuginfod_open(&snap->options.symbols, &snap->debuginfod);

	if (failure) {
		ss_failure_print(failure);
		return SS_STATUS_NOTHING;
	}
	if (!is_one_if_needed(snap))
		return SS_STATUS_NOTHING;
	ss_target_options_wait(&snap->targets);
	ss_row_arguments_begin(&snap->options.common.rows, snap->targets.at_ns);
	snap->missing = snap->targets.unresolved;
	if (is_merged(snap))
		return run_merged(snap);
	for (size_t i = 0; i < snap->targets.targets.count; i++) {
		_cleanup_error_ struct ss_error *error =
			run_target(snap, &snap->targets.targets.items[i]);
		if (!error)
			continue;
		snap->missing++;
		ss_failure_print(error);
	}
	return status_of(snap);
}

static void check_series(const struct snap *snap, const struct argp_state *state)
{
	const struct ss_series_options *series = &snap->series;
	const struct ss_format *format = snap->options.common.format;

	if (series->each && !series->period_ns)
		ss_usage_fail(state, "--each needs --interval or --count");
	if (series->each && format->single)
		ss_usage_fail(state, "--each cannot be used with --format=%s",
			      format->name);
	if (series->period_ns && ss_target_options_count(&snap->targets) > 1)
		ss_usage_fail(state, "--interval and --count work on one process");
	/* Profiles have none. */
	if (series->period_ns && !series->each && !format->write_series)
		ss_options_check_tasks(state, &snap->options,
				       "with merged snapshots in this format");
}

static void check(const struct snap *snap, const struct argp_state *state)
{
	const struct ss_common_options *options = &snap->options.common;

	check_series(snap, state);
	ss_target_options_require(state, &snap->targets);
	if (options->format->single && ss_target_options_count(&snap->targets) > 1 &&
	    !ss_output_is_per_target(options->output))
		ss_usage_fail(state,
			      "--format=%s holds one process per file: use -o FILE%%p",
			      options->format->name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct snap *snap = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &snap->options;
		state->child_inputs[1] = &snap->targets;
		state->child_inputs[2] = &snap->targets;
		state->child_inputs[3] = &snap->series;
		state->child_inputs[4] = &snap->options;
		state->child_inputs[5] = &snap->options.common.rows;
		state->child_inputs[6] = &snap->options.common.rows;
		return 0;
	case ARGP_KEY_END:
		check(snap, state);
		return 0;
	case '0' ... '9':
		ss_usage_fail(state, "a pid cannot be negative");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {
	{ &ss_options_argp, 0, NULL, 0 },  { &ss_target_argp, 0, NULL, 0 },
	{ &ss_targets_argp, 0, NULL, 0 },  { &ss_series_argp, 0, NULL, 0 },
	{ &ss_minidump_argp, 0, NULL, 0 }, { &ss_row_argp, 0, NULL, 0 },
	{ &ss_row_env_argp, 0, NULL, 0 },  {},
};

/* argp takes "-5" for an option: these entries allow a clear error message. */
#define DIGIT(c)                                                                         \
	{                                                                                \
		NULL, c, NULL, OPTION_HIDDEN, NULL, 0                                    \
	}
static const struct argp_option digits[] = {
	DIGIT('0'), DIGIT('1'), DIGIT('2'), DIGIT('3'), DIGIT('4'), DIGIT('5'),
	DIGIT('6'), DIGIT('7'), DIGIT('8'), DIGIT('9'), {},
};

static const struct argp argp = {
	.options = digits,
	.parser = parse,
	.args_doc = "PID[/TID,TID...]|NAME...",
	.doc = "Print the stacks of all threads of running processes, and what they wait "
	       "for.\v",
	.children = children,
	.help_filter = ss_command_help,
};

static int run(int argc, char **argv)
{
	_cleanup_(snap_deinit) struct snap snap = {};

	ss_options_init(&snap.options);
	snap.series.common = &snap.options.common;
	if (!ss_usage_parse(&ss_command_snap, argc, argv, 0, &snap))
		return SS_STATUS_NOTHING;
	ss_options_open_cache(&snap.options);
	return run_targets(&snap);
}

const struct ss_command ss_command_snap = {
	.name = "snap",
	.summary = "print one snapshot of each process",
	.argp = &argp,
	.run = run,
};
