#include "cli/snap_processes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/interpret.h"
#include "interpret/interpret.h"
#include "process/process_list.h"
#include "sandbox/sandbox.h"

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
	struct ss_snap_processes *processes;
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
		.of_processes = true,
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
	error = format->write_processes(&snapshots, &options, out);
	return ss_reading_close(reading, out, error);
}

static void count_missing(const struct merge *merge,
			  const struct ss_interpretation *result)
{
	struct ss_snap_processes *processes = merge->processes;

	for (size_t i = 0; i < merge->count; i++) {
		const struct ss_snapshot *snapshot = result->snapshots[i];
		const struct entry *entry = merge->entries[i];
		processes->shown += !ss_process_source_refusal(entry->source);
		processes->missing +=
			ss_incomplete_count(snapshot) +
				ss_selection_run_report(&entry->run, snapshot) >
			0;
	}
	if (!processes->options->symbols.raw)
		ss_incomplete_print_modules(result->snapshots[merge->count - 1]);
}

/* Each apart, so that what is wrong with one does not concern the others. */
static struct ss_error *print_apart(const struct merge *merge)
{
	struct ss_snap_processes *processes = merge->processes;

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
		processes->shown += !error && !ss_process_source_refusal(entry->source);
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

static struct ss_error *show(struct merge *merge)
{
	bool merged = false;
	struct ss_error *error = merge->count > 1 ? print_merged(merge, &merged) : NULL;

	return merged || error ? error : print_apart(merge);
}

/* Capturing --------------------------------------------------------------- */

struct batch {
	struct ss_snap_processes *processes;
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
	struct ss_snap_processes *processes = batch->processes;
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
	struct ss_snap_processes *processes = batch->processes;
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

	for (size_t i = 0; i < batch->count; i++) {
		if (batch->entries[i].run.argument->pid == process->pid)
			return true;
	}
	return false;
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
	struct ss_error *error = entries && captures && done ? NULL :
							       ss_error_no_memory();

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
		error = show(&merge);
	}
	return error;
}

struct ss_error *ss_snap_processes_run(struct ss_snap_processes *processes)
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
