/*
 * stacksnap record [OPTIONS] PID... | -- COMMAND ARG...: samples into a recording until
 * Ctrl-C, the duration, or the end of the process.
 */
#include <argp.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
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

static void check(const struct record *record)
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

static void begin_options(void *input)
{
	struct record *record = input;

	ss_usage_check(ss_wait_functions_load(&record->waits));
}

static void end_options(void *input)
{
	struct record *record = input;

	check(record);
	ss_usage_check(ss_wait_table_added(record->waits, &record->wait_functions));
}

/* Everything after "--" is a command. */
static bool take_argument(void *input, char **argv, bool quoted)
{
	struct record *record = input;

	if (quoted)
		record->command = argv;
	else
		ss_target_options_add(&record->process, *argv);
	return quoted;
}

static void take_rate(void *period_ns, const char *arg)
{
	*(uint64_t *)period_ns =
		SS_NS_PER_SECOND / ss_argument_number("rate", arg, 1, HZ_MAX);
}

static const struct ss_option table[] = {
	{ .doc = "Samples:", .group = 3 },
	{ "rate", 'r', "HZ", "Samples per second (default: 99)", 0, .take = take_rate,
	  .offset = offsetof(struct record, options.period_ns) },
	{ "duration", 'd', "TIME",
	  "Stop after TIME: 30, 90s, 5m, 2h (default: until Ctrl-C)", 0,
	  SS_SETS_DURATION(struct record, options.duration_ns) },
	{ "last", 0, "TIME", "Keep only the last TIME of the recording", 0,
	  SS_SETS_DURATION(struct record, options.keep_ns) },
	{ "on-cpu", 0, NULL, "Record running threads only", 0,
	  SS_SETS_FLAG(struct record, options.on_cpu) },
	{ "children", 0, NULL, "Also record child processes", 0,
	  SS_SETS_FLAG(struct record, options.children) },
	SS_OPTION_WAIT_FUNCTIONS(struct record, waits, 0),
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_common_group, offsetof(struct record, common) },
	{ &ss_limits_group, offsetof(struct record, common) },
	{ &ss_selection_group, offsetof(struct record, selection) },
	{ &ss_target_group, offsetof(struct record, process) },
	{ &ss_targets_group, offsetof(struct record, process) },
	{ &ss_label_group, offsetof(struct record, labels) },
	{ &ss_row_env_group, offsetof(struct record, labels) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME...\n-- COMMAND ARG...",
	.doc = "Sample the stacks of a process into a file, until Ctrl-C or the end of "
	       "the process.\v"
	       "stacksnap report reads the file, on this machine or another one.",
	.begin = begin_options,
	.argument = take_argument,
	.end = end_options,
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

/* How much of the recording there is. That a process was on no CPU is recorded, too; that selected threads
   were not may be a mistake in their names. */
static int status_of_recording(const struct record *record,
			       const struct ss_recorder_summary *summary, bool failed)
{
	const bool idle = record->options.on_cpu && !record->selection.tids.count &&
			  !record->selection.patterns.count && summary->ticks > 0 &&
			  !failed;

	if (summary->samples > 0 || idle)
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
	int status = status_of_recording(record, summary, error != NULL);
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
	.options = &group,
	.run = run,
};
