/*
 * stacksnap record [OPTIONS] PID... | -- COMMAND ARG...: samples into a recording until
 * Ctrl-C, the duration, or the end of the process.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/process.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/targets.h"
#include "diagnose/wait_table.h"
#include "process/spawn.h"
#include "stacksnap/record.h"

enum { HZ_MAX = 10000 };

/* A command that has ended: its exit status, or this and the number of the signal. */
enum { STATUS_SIGNAL = 128, END_MS = 10000 };

enum key {
	KEY_RATE = 'r',
	KEY_DURATION = 'd',
	KEY_ON_CPU = 0x200,
	KEY_CHILDREN,
	KEY_LAST,
	KEY_WAIT_FUNCTIONS,
};

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Samples:", 3 },
	{ "rate", KEY_RATE, "HZ", 0, "Samples per second (default: 99)", 0 },
	{ "duration", KEY_DURATION, "TIME", 0,
	  "Stop after TIME: 30, 90s, 5m, 2h (default: until Ctrl-C)", 0 },
	{ "last", KEY_LAST, "TIME", 0, "Keep only the last TIME of the recording", 0 },
	{ "on-cpu", KEY_ON_CPU, NULL, 0, "Record running threads only", 0 },
	{ "children", KEY_CHILDREN, NULL, 0, "Also record child processes", 0 },
	SS_WAIT_FUNCTIONS_OPTION(KEY_WAIT_FUNCTIONS, 0),
	{},
};

struct record {
	struct ss_recorder_options options;
	struct ss_common_options common;
	struct ss_selection selection;
	struct ss_target_options process;
	pid_t pid; /* of process */
	struct ss_wait_table *waits;
	char *wait_functions; /* those that are not built in, or NULL */
	struct ss_row_arguments labels;
	char **command;	 /* in argv; or NULL */
	int exit_status; /* of a command that cannot be executed; or 0 */
	struct ss_target *target;
	struct ss_output *file;
	struct ss_recorder *recorder;
	struct ss_record_report report;
};

static void record_deinit(struct record *record)
{
	ss_recorder_free(record->recorder);
	ss_target_close(record->target);
	ss_output_close(record->file);
	ss_target_options_deinit(&record->process);
	ss_selection_deinit(&record->selection);
	ss_wait_table_free(record->waits);
	free(record->wait_functions);
	ss_row_arguments_deinit(&record->labels);
}

static void check(struct record *record)
{
	bool has_process = ss_target_options_count(&record->process) > 0;

	if (!has_process && !record->command)
		ss_usage_fail("expected a pid, the name of a process, or -- COMMAND");
	if (has_process && record->command)
		ss_usage_fail("expected either a pid or a command");
	if (ss_target_options_count(&record->process) > 1 &&
	    !ss_output_is_per_target(record->common.output))
		ss_usage_fail(
			"a recording holds one process: use -o FILE%%p for several");
	if (record->options.keep_ns && ss_output_is_stdout(record->common.output))
		ss_usage_fail("--last needs a file: standard output cannot be rewritten");
}

static error_t parse_value(int key, char *arg, struct argp_state *state)
{
	struct record *record = state->input;

	switch (key) {
	case KEY_RATE:
		record->options.period_ns =
			1000000000 / ss_argument_number("rate", arg, 1, HZ_MAX);
		return 0;
	case KEY_DURATION:
		record->options.duration_ns = ss_argument_duration("duration", arg);
		return 0;
	case KEY_LAST:
		record->options.keep_ns = ss_argument_duration("last", arg);
		return 0;
	case KEY_WAIT_FUNCTIONS:
		ss_usage_check(ss_wait_functions_add(record->waits, arg));
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record *record = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		ss_usage_check(ss_wait_functions_load(&record->waits));
		state->child_inputs[0] = &record->common;
		state->child_inputs[1] = &record->common;
		state->child_inputs[2] = &record->selection;
		state->child_inputs[3] = &record->process;
		state->child_inputs[4] = &record->process;
		state->child_inputs[5] = &record->labels;
		state->child_inputs[6] = &record->labels;
		return 0;
	case KEY_ON_CPU:
		record->options.on_cpu = true;
		return 0;
	case KEY_CHILDREN:
		record->options.children = true;
		return 0;
	case ARGP_KEY_ARG:
		/* Everything after "--" is a command. */
		if (state->quoted && state->next - 1 >= state->quoted) {
			record->command = &state->argv[state->next - 1];
			state->next = state->argc;
		} else {
			ss_target_options_add(&record->process, arg);
		}
		return 0;
	case ARGP_KEY_END:
		check(record);
		ss_usage_check(
			ss_wait_table_added(record->waits, &record->wait_functions));
		return 0;
	default:
		return parse_value(key, arg, state);
	}
}

static const struct argp_child children[] = {
	{ &ss_common_argp, 0, NULL, 0 },    { &ss_limits_argp, 0, NULL, 0 },
	{ &ss_selection_argp, 0, NULL, 0 }, { &ss_target_argp, 0, NULL, 0 },
	{ &ss_targets_argp, 0, NULL, 0 },   { &ss_label_argp, 0, NULL, 0 },
	{ &ss_row_env_argp, 0, NULL, 0 },   {},
};

static const struct argp argp = {
	.children = children,
	.options = table,
	.parser = parse,
	.args_doc = "PID|NAME...\n-- COMMAND ARG...",
	.doc = "Sample the stacks of a process into a file, until Ctrl-C or the end of "
	       "the process.\v"
	       "stacksnap report reads the file, on this machine or another one.",
};

static struct ss_error *open_recorder(struct record *record)
{
	struct ss_recorder_options options = record->options;
	pid_t pid = ss_target_pid(record->target);
	int fd = -1;
	struct ss_error *error =
		ss_output_open(record->common.output, pid, &record->file);

	if (!error)
		error = ss_output_duplicate(record->file, &fd);
	if (error)
		return error;
	options.directory = ss_output_directory(record->file);
	options.name = ss_output_name(record->file);
	struct ss_row_source source;
	ss_row_source_init(&source, &record->labels);
	ss_row_source_add(&source, &record->labels, record->target);
	const struct ss_recording_about about = {
		.wait_functions = record->wait_functions,
		.boot_id = source.options.boot_id,
		.labels = source.options.labels,
		.label_count = source.options.label_count,
	};
	options.about = &about;
	error = ss_recorder_new(record->target, fd, &options, &record->recorder);
	ss_row_source_deinit(&source);
	/* What is recorded until it is killed can be read. */
	return error ? error : ss_output_publish(record->file);
}

static struct ss_error *begin(struct record *record)
{
	struct ss_error *error = record->command ?
					 ss_target_spawn(record->command, &record->target,
							 &record->exit_status) :
					 ss_target_open(record->pid, &record->target);

	return error ? error : open_recorder(record);
}

/* The exit status of the command, as a shell reports it; -1: it still runs. */
static int status_of_command(struct record *record, bool ended)
{
	int status = 0;

	if (!record->command ||
	    !ss_target_wait(record->target, ended ? END_MS : 0, &status))
		return -1;
	if (WIFSIGNALED(status)) {
		ss_failure_warn("the command was ended by signal %d (%s)",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
		return STATUS_SIGNAL + WTERMSIG(status);
	}
	if (WEXITSTATUS(status))
		ss_failure_warn("the command ended with exit status %d",
				WEXITSTATUS(status));
	return WEXITSTATUS(status);
}

/* How much of the recording there is. */
static int status_of_recording(const struct ss_recorder_summary *summary, bool failed)
{
	if (summary->samples > 0)
		return failed || summary->lost ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
	if (!failed)
		ss_failure_warn("nothing was recorded: %s",
				summary->ticks ?
					"the selection matched no thread at any tick" :
					"the recording ended before the first tick");
	return SS_STATUS_NOTHING;
}

static int run_recorder(struct record *record)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	_cleanup_error_ struct ss_error *error = begin(record);

	if (error) {
		int status = ss_failure_status(error, 0);
		return record->exit_status ? record->exit_status : status;
	}
	error = ss_recorder_run_watched(record->recorder, ss_target_pid(record->target),
					signals, SS_ARRAY_SIZE(signals), false);
	const struct ss_recorder_summary *summary = ss_recorder_summary(record->recorder);
	ss_failure_print(error);
	ss_record_report_end(summary, ss_output_path(record->file), &record->report);
	if (record->common.verbose && summary->partial)
		ss_failure_warn("the kernel refused part of the sandbox");
	int status = status_of_recording(summary, error != NULL);
	int command = status_of_command(record, summary->end == SS_RECORDING_TARGET_END);
	if (record->command && command < 0)
		ss_failure_warn("process %d is still running",
				ss_target_pid(record->target));
	return command > 0 ? command : status;
}

/* In a child process. */
static int run_index(void *data, size_t index)
{
	struct record *record = data;

	record->pid = record->process.targets.items[index].pid;
	return run_recorder(record);
}

/* Records each process into a file of its own, all at the same time. */
static int run_several(struct record *record)
{
	size_t count = record->process.targets.count;
	_cleanup_free_ int *statuses = calloc(count, sizeof(*statuses));
	const struct ss_each_process each = { .count = count,
					      .work = run_index,
					      .data = record };
	size_t recorded = 0;
	size_t partial = record->process.unresolved;

	if (!ss_output_is_per_target(record->common.output)) {
		ss_failure_warn("%zu processes are selected, but a recording holds one: "
				"use -o FILE%%p",
				count);
		return SS_STATUS_NOTHING;
	}
	record->options.progress = NULL;
	_cleanup_error_ struct ss_error *error =
		statuses ? ss_each_process_run(&each, statuses) : ss_error_no_memory();
	if (error)
		return ss_failure_status(error, 0);
	for (size_t i = 0; i < count; i++) {
		recorded += statuses[i] <= SS_STATUS_PARTIAL;
		partial += statuses[i] != SS_STATUS_WHOLE;
	}
	if (recorded == 0)
		return SS_STATUS_NOTHING;
	return partial ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

static int run_processes(struct record *record)
{
	if (!ss_target_options_resolve(&record->process))
		return SS_STATUS_NOTHING;
	ss_target_options_wait(&record->process);
	if (record->process.targets.count > 1)
		return run_several(record);
	record->pid = ss_target_options_pid(&record->process);
	return run_recorder(record);
}

static int run(int argc, char **argv)
{
	_cleanup_(record_deinit) struct record record = {
		.options = { .size = sizeof(record.options) },
		.process.no_threads = true,
		.common.default_output = "stacksnap-%p-%t.rec",
	};
	struct ss_selection_run filter = { .selection = &record.selection };
	static const struct ss_target_argument none = {};

	if (!ss_usage_parse(&ss_command_record, argc, argv, ARGP_IN_ORDER, &record))
		return SS_STATUS_NOTHING;
	record.options.max_frames = record.common.max_frames ? record.common.max_frames :
							       UINT_MAX;
	record.options.max_stack = record.common.max_stack;
	if (record.options.on_cpu)
		record.selection.states = "R";
	filter.argument = &none;
	if (ss_selection_run_is_active(&filter)) {
		record.options.filter = ss_selection_run_filter;
		record.options.filter_data = &filter;
	}
	record.options.progress = ss_record_report_progress;
	record.options.progress_data = &record.report;
	record.report.on_cpu = record.options.on_cpu;
	return record.command ? run_recorder(&record) : run_processes(&record);
}

const struct ss_command ss_command_record = {
	.name = "record",
	.summary = "sample a process into a file, for stacksnap report",
	.argp = &argp,
	.run = run,
};
