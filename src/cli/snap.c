/*
 * stacksnap [snap] [OPTIONS] PID[/TID,TID...]...: one snapshot of each process.
 */
#include <argp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/search.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/targets.h"
#include "interpret/interpret.h"
#include "process/process_list.h"
#include "report/names.h"
#include "sandbox/sandbox.h"

/*
 * Several processes, merged ----------------------------------------------------
 *
 * All are captured first, one directly after the other; then those of one owner are interpreted
 * together, in one confined process, since nobody may find out or change what is known about
 * processes of others.
 */

struct processes {
	const struct ss_options *options;
	const struct ss_target_argument *targets;
	size_t count;
	struct ss_debuginfod *debuginfod; /* or NULL */
	struct ss_output *output;
	/* Results: how many were shown with stacks, and have anything missing. */
	size_t shown;
	size_t missing;
};

/* So many are merged at a time: each keeps the files of its modules open. */
enum { MERGED_MAX = 256, MERGED_MIN = 8, FILES_EACH = 64 };

/* Of all stacks that are held at a time. */
#define BYTES_MAX ((uint64_t)1 << 30)

struct entry {
	struct ss_process_source *source;
	struct ss_selection_run run;
	struct ss_reading reading;
	struct ss_interpret_options options;
	const char *command_line;
};

/* Processes of one owner, as a source. */
struct merge {
	struct processes *processes;
	struct entry **entries;
	struct ss_capture **captures; /* of the entries */
	size_t count;
	bool *separate; /* another text was printed before */
};

static size_t read_memory(void *data, size_t index, uint64_t address, void *bytes,
			  size_t size)
{
	const struct merge *merge = data;
	const struct ss_source *source =
		ss_process_source_last(merge->entries[index]->source);

	return source->read(source->data, 0, address, bytes, size);
}

static bool check_thread(void *data, size_t index, pid_t tid)
{
	const struct merge *merge = data;
	const struct ss_source *source =
		ss_process_source_last(merge->entries[index]->source);

	return source->check(source->data, 0, tid);
}

static struct ss_error *write_merged(const struct merge *merge,
				     const struct ss_interpretation *result)
{
	const struct ss_reading *reading = &merge->entries[0]->reading;
	const struct ss_format *format = reading->options->common.format;
	const struct ss_format_options options =
		ss_reading_format_options(reading, result);
	_cleanup_free_ const char **commands = calloc(merge->count, sizeof(*commands));
	const struct ss_snapshots snapshots = {
		.items = (const struct ss_snapshot *const *)result->snapshots,
		.count = result->count,
		.kind = SS_SNAPSHOTS_PROCESSES,
		.command_lines = commands,
	};
	FILE *out = NULL;
	struct ss_error *error = commands ? ss_reading_open(&out) : ss_error_no_memory();

	if (error)
		return error;
	for (size_t i = 0; i < merge->count; i++)
		commands[i] = merge->entries[i]->command_line;
	if (*merge->separate)
		(void)fputs(format->separator, out);
	error = format->write_snapshots(&snapshots, &options, out);
	return ss_reading_close(reading, out, error);
}

static void count_missing(const struct merge *merge,
			  const struct ss_interpretation *result)
{
	struct processes *processes = merge->processes;

	for (size_t i = 0; i < merge->count; i++) {
		const struct ss_snapshot *snapshot = result->snapshots[i];
		const struct entry *entry = merge->entries[i];
		processes->shown += !entry->reading.refused;
		processes->missing +=
			ss_missing_count(snapshot, processes->options->strict) +
				ss_selection_run_report(&entry->run, snapshot) >
			0;
	}
	if (!processes->options->symbols.raw)
		ss_incomplete_print_modules(result->snapshots[merge->count - 1]);
}

/* Each apart, so that what is wrong with one does not concern the others. */
static struct ss_error *print_apart(const struct merge *merge)
{
	struct processes *processes = merge->processes;

	for (size_t i = 0; i < merge->count; i++) {
		struct entry *entry = merge->entries[i];
		bool missing = false;
		entry->options.settled = true; /* it was completed */
		entry->reading.separate = *merge->separate;
		_cleanup_error_ struct ss_error *error = ss_reading_show(
			&entry->reading, ss_process_source_last(entry->source),
			&entry->options, &missing);
		if (error && ss_error_code(error) == SS_ERROR_SYSTEM)
			return take_ptr(error);
		if (error)
			ss_failure_print(error);
		else
			*merge->separate = true;
		processes->shown += !error && !entry->reading.refused;
		processes->missing += error || missing;
	}
	return NULL;
}

/* *ret: whether they were printed; otherwise each is to be printed apart. */
static struct ss_error *print_merged(struct merge *merge, bool *ret)
{
	struct entry *first = merge->entries[0];
	struct ss_interpret_options options = first->options;
	struct ss_source source = {
		.data = merge,
		.count = merge->count,
		.captures = merge->captures,
		.of_processes = true,
		.read = read_memory,
		.check = check_thread,
	};
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;

	for (size_t i = 0; i < merge->count; i++)
		merge->captures[i] =
			ss_process_source_last(merge->entries[i]->source)->captures[0];
	options.more_memory *= merge->count;
	options.last_level = SS_SANDBOX_RAW;
	options.goroutines = false; /* each process has its own */
	_cleanup_error_ struct ss_error *failed =
		ss_reading_interpret(&first->reading, &source, &options, &result);
	if (failed || result->sandbox->failure_count)
		return NULL;
	struct ss_error *error = write_merged(merge, result);
	if (error)
		return error;
	*ret = true;
	*merge->separate = true;
	count_missing(merge, result);
	return NULL;
}

static struct ss_error *show_merge(struct merge *merge)
{
	bool merged = false;
	struct ss_error *error = merge->count > 1 ? print_merged(merge, &merged) : NULL;

	return merged || error ? error : print_apart(merge);
}

struct batch {
	struct processes *processes;
	struct entry *entries;
	size_t count;
	struct ss_process_list *commands;
	bool separate;
	bool color;
};

static void batch_deinit(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		ss_process_source_free(batch->entries[i].source);
		ss_reading_deinit(&batch->entries[i].reading);
	}
	free(batch->entries);
	ss_process_list_free(batch->commands);
	batch->entries = NULL;
	batch->commands = NULL;
	batch->count = 0;
}

static size_t limit(void)
{
	struct rlimit files;
	rlim_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ?
			      files.rlim_cur / FILES_EACH :
			      MERGED_MIN;

	return (size_t)SS_MAX(SS_MIN(most, (rlim_t)MERGED_MAX), (rlim_t)MERGED_MIN);
}

static bool capture(struct batch *batch, const struct ss_target_argument *target)
{
	struct processes *processes = batch->processes;
	struct entry *entry = &batch->entries[batch->count];

	*entry = (struct entry){
		.run = { .selection = &processes->options->selection,
			 .argument = target },
		.reading = { .options = processes->options,
			     .run = &entry->run,
			     .output = processes->output,
			     .requests.debuginfod = processes->debuginfod,
			     .color = batch->color },
	};
	ss_reading_configure(&entry->reading, &entry->options);
	_cleanup_error_ struct ss_error *error =
		ss_reading_capture(&entry->reading, &entry->run, true, &entry->source);
	if (!error) {
		ss_interpret_as_owner(ss_process_source_target(entry->source),
				      &entry->options);
		batch->count++;
		return true;
	}
	ss_failure_print(error);
	ss_reading_deinit(&entry->reading);
	processes->missing++;
	return false;
}

/* Captures as many processes, from first on, as fit. Returns the index of the next one. */
static size_t capture_all(struct batch *batch, size_t first, size_t most)
{
	struct processes *processes = batch->processes;
	uint64_t bytes = 0;
	size_t next = first;

	for (; next < processes->count && batch->count < most && bytes < BYTES_MAX;
	     next++) {
		if (capture(batch, &processes->targets[next]))
			bytes += ss_process_source_size(
				batch->entries[batch->count - 1].source);
	}
	return next;
}

/* What the stacks lack is read in the order of the captures. After an error a stack stays
   incomplete, which is said when it is shown. */
static void complete(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct entry *entry = &batch->entries[i];
		struct ss_interpret_options options = entry->options;
		struct ss_interpretation *result = NULL;
		options.only_stacks = true;
		options.last_level = SS_SANDBOX_RAW;
		ss_error_free(ss_reading_interpret(&entry->reading,
						   ss_process_source_last(entry->source),
						   &options, &result));
		ss_interpretation_free(result);
	}
}

static bool is_captured(void *data, const struct ss_listed_process *process)
{
	const struct batch *batch = data;

	return ss_any(batch->count, i,
		      batch->entries[i].run.argument->pid == process->pid);
}

/* Without command lines the names of the processes are shown. */
static void read_commands(struct batch *batch)
{
	ss_error_free(ss_process_list_new(is_captured, batch, &batch->commands));
	if (!batch->commands)
		return;
	ss_process_list_read_commands(batch->commands);
	for (size_t i = 0; i < ss_process_list_count(batch->commands); i++) {
		const struct ss_listed_process *process =
			ss_process_list_at(batch->commands, i);
		for (size_t j = 0; j < batch->count; j++) {
			if (batch->entries[j].run.argument->pid == process->pid)
				batch->entries[j].command_line = process->command_line;
		}
	}
}

static bool have_one_owner(const struct entry *a, const struct entry *b)
{
	const struct ss_interpret_options *x = &a->options;
	const struct ss_interpret_options *y = &b->options;

	return x->owner_known && y->owner_known && x->uid == y->uid && x->gid == y->gid;
}

/* Shows the processes of each owner. */
static struct ss_error *show_all(struct batch *batch)
{
	_cleanup_free_ struct entry **entries =
		calloc(batch->count + 1, sizeof(struct entry *));
	_cleanup_free_ struct ss_capture **captures =
		calloc(batch->count + 1, sizeof(struct ss_capture *));
	_cleanup_free_ bool *done = calloc(batch->count + 1, sizeof(*done));
	struct ss_error *error = NULL;

	if (!entries || !captures || !done)
		return ss_error_no_memory();
	for (size_t i = 0; i < batch->count && !error; i++) {
		struct merge merge = {
			.processes = batch->processes,
			.entries = entries,
			.captures = captures,
			.separate = &batch->separate,
		};
		if (done[i])
			continue;
		for (size_t j = i; j < batch->count; j++) {
			if (j > i &&
			    !have_one_owner(&batch->entries[i], &batch->entries[j]))
				continue;
			entries[merge.count++] = &batch->entries[j];
			done[j] = true;
		}
		error = show_merge(&merge);
	}
	return error;
}

/* Prints a message for each process that cannot be captured. Errors: SYSTEM (the output cannot be written),
   NO_MEMORY. */
static struct ss_error *show_processes(struct processes *processes)
{
	__attribute__((cleanup(batch_deinit))) struct batch batch = {
		.processes = processes,
		.color = ss_options_want_color(&processes->options->common),
	};
	size_t most = limit();
	struct ss_error *error = NULL;

	for (size_t next = 0; next < processes->count && !error;) {
		batch.entries = calloc(most, sizeof(*batch.entries));
		if (!batch.entries)
			return ss_error_no_memory();
		next = capture_all(&batch, next, most);
		complete(&batch);
		read_commands(&batch);
		error = show_all(&batch);
		batch_deinit(&batch);
	}
	return error;
}

/* The command ------------------------------------------------------------------- */

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
		.owners = true,
		.output = snap->output,
		.separate = snap->printed > 0 &&
			    !ss_output_is_per_target(snap->options.common.output),
		.color = ss_options_want_color(&snap->options.common),
	};
	bool missing = false;
	struct ss_error *error = ss_reading_snapshot(&reading, run, &missing);

	if (error)
		return error;
	snap->printed++;
	snap->shown += !reading.refused;
	snap->missing += missing;
	return NULL;
}

static struct ss_error *show_series(struct snap *snap, struct ss_selection_run *run)
{
	struct ss_series_job series = { .options = &snap->options,
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
		ss_failure_warn("--interval and --count work on one process, but %zu are "
				"selected",
				count);
	else if (common->format->single && !ss_output_is_per_target(common->output))
		ss_failure_warn("--format=%s holds one process per file, but %zu are "
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
	       snap->options.common.format->merges_processes &&
	       !ss_output_is_per_target(snap->options.common.output);
}

static int run_merged(struct snap *snap)
{
	struct processes processes = {
		.options = &snap->options,
		.targets = snap->targets.targets.items,
		.count = snap->targets.targets.count,
		.debuginfod = snap->debuginfod,
	};
	_cleanup_error_ struct ss_error *error =
		ss_output_open(snap->options.common.output, 0, &snap->output);

	processes.output = snap->output;
	if (!error)
		error = show_processes(&processes);
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

static void check_series(const struct snap *snap)
{
	const struct ss_series_options *series = &snap->series;
	const struct ss_format *format = snap->options.common.format;

	if (series->each && !series->period_ns)
		ss_usage_fail("--each needs --interval or --count");
	if (series->each && format->single)
		ss_usage_fail("--each cannot be used with --format=%s", format->name);
	if (series->period_ns && ss_target_options_count(&snap->targets) > 1)
		ss_usage_fail("--interval and --count work on one process");
	/* Profiles have none. */
	if (series->period_ns && !series->each && !format->write_snapshots &&
	    snap->options.tasks_given && snap->options.tasks)
		ss_usage_fail("--tasks cannot be used with merged snapshots in this "
			      "format: tasks are not read");
}

static void check(void *input)
{
	const struct snap *snap = input;
	const struct ss_common_options *options = &snap->options.common;

	check_series(snap);
	ss_target_options_require(&snap->targets);
	if (options->format->single && ss_target_options_count(&snap->targets) > 1 &&
	    !ss_output_is_per_target(options->output))
		ss_usage_fail("--format=%s holds one process per file: use -o FILE%%p",
			      options->format->name);
}

/* getopt takes "-5" for an option: these entries allow a clear error message. */
static void refuse_digit(void *input, const char *arg)
{
	(void)input;
	(void)arg;
	ss_usage_fail("a pid cannot be negative");
}

#define DIGIT(c)                                                                         \
	{                                                                                \
		.letter = (c), .flags = OPTION_HIDDEN, .take = refuse_digit              \
	}
static const struct ss_option digits[] = {
	DIGIT('0'), DIGIT('1'), DIGIT('2'), DIGIT('3'), DIGIT('4'), DIGIT('5'),
	DIGIT('6'), DIGIT('7'), DIGIT('8'), DIGIT('9'), {},
};

static const struct ss_option_child children[] = {
	{ &ss_options_group, offsetof(struct snap, options) },
	{ &ss_target_group, offsetof(struct snap, targets) },
	{ &ss_targets_group, offsetof(struct snap, targets) },
	{ &ss_series_group, offsetof(struct snap, series) },
	{ &ss_minidump_group, offsetof(struct snap, options) },
	{ &ss_row_group, offsetof(struct snap, options.common.rows) },
	{ &ss_row_env_group, offsetof(struct snap, options.common.rows) },
	{ &ss_selection_group, offsetof(struct snap, options.selection) },
	{ &ss_waits_group, offsetof(struct snap, options) },
	{},
};

static const struct ss_option_group group = {
	.options = digits,
	.children = children,
	.args_doc = "PID[/TID,TID...]|NAME...",
	.doc = "Print the stacks of all threads of running processes, and what they wait "
	       "for.\v",
	.end = check,
	.write_help = ss_command_write_help,
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
	.options = &group,
	.run = run,
};
