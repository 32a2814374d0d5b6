#include "cli/snap_processes.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/snap_job.h"

/* So many are merged at a time: each keeps the files of its modules open. */
enum { MERGED_MAX = 256, MERGED_MIN = 8, FILES_EACH = 64 };

/* Of all stacks that are held at a time. */
#define BYTES_MAX ((uint64_t)1 << 30)

struct entry {
	struct ss_snap_job job;
	struct ss_selection_run run;
	struct ss_phases phases;
	const char *command_line;
};

/* Processes of one owner, in the sandbox and outside of it. */
struct merge {
	struct ss_snap_processes *processes;
	struct entry **entries;
	size_t count;
	bool *separate; /* another text was printed before */
	bool color;
	bool privileged;
	struct ss_file_requests requests;
	/* Shared with the sandbox, which may write anything: whose memory it reads. */
	volatile uint32_t *current;
};

/* In the sandbox ------------------------------------------------------------ */

struct attempt {
	const struct merge *merge;
	const struct ss_sandbox_attempt *sandbox;
	struct ss_snapshot **snapshots; /* owned */
	size_t count;
};

static void attempt_deinit(struct attempt *attempt)
{
	for (size_t i = 0; i < attempt->count; i++)
		ss_snapshot_free(attempt->snapshots[i]);
	free(attempt->snapshots);
}

static struct ss_error *unwind(struct attempt *attempt, const struct entry *entry)
{
	const struct ss_options *options = attempt->merge->processes->options;
	const struct ss_unwind_options unwind_options = {
		.size = sizeof(unwind_options),
		.max_frames = options->common.max_frames,
		.read = ss_sandbox_read,
		.check = ss_sandbox_check,
		.read_data = ss_drop_const(attempt->sandbox),
		.native = options->native,
		.no_runtimes = attempt->sandbox->level != SS_SANDBOX_NAMES,
		.tasks = options->tasks > 0,
	};
	struct ss_snapshot **slot = &attempt->snapshots[attempt->count];

	ss_sandbox_enter(attempt->sandbox, SS_SANDBOX_UNWIND);
	*attempt->merge->current = (uint32_t)attempt->count;
	struct ss_error *error = ss_capture_unwind(entry->job.analysis.capture,
						   attempt->sandbox->session,
						   &unwind_options, slot);
	attempt->count += !error;
	return error;
}

static struct ss_error *interpret(struct attempt *attempt, const struct entry *entry)
{
	const struct ss_options *options = attempt->merge->processes->options;
	const struct ss_sandbox_attempt *sandbox = attempt->sandbox;
	bool names = sandbox->level == SS_SANDBOX_NAMES;
	struct ss_error *error = unwind(attempt, entry);

	if (error)
		return error;
	struct ss_snapshot *snapshot = attempt->snapshots[attempt->count - 1];
	ss_sandbox_enter(sandbox, SS_SANDBOX_SYMBOLIZE);
	if (names)
		error = ss_snapshot_symbolize(snapshot, sandbox->session,
					      options->symbols.flags);
	return error ? error :
		       ss_analysis_diagnose(sandbox, options, entry->job.analysis.capture,
					    snapshot);
}

static struct ss_error *print(const struct attempt *attempt)
{
	const struct merge *merge = attempt->merge;
	const struct ss_options *options = merge->processes->options;
	const struct ss_snapshot *last = attempt->snapshots[attempt->count - 1];
	_cleanup_free_ const char **commands = calloc(attempt->count, sizeof(*commands));
	_cleanup_free_ char *advice =
		ss_analysis_advice(attempt->sandbox, last, options, merge->privileged);
	const struct ss_snapshots snapshots = {
		.items = (const struct ss_snapshot *const *)attempt->snapshots,
		.count = attempt->count,
		.of_processes = true,
		.command_lines = commands,
	};
	const struct ss_format_options format_options = {
		.size = sizeof(format_options),
		.raw = attempt->sandbox->level != SS_SANDBOX_NAMES,
		.all = options->all ||
		       ss_selection_run_is_active(&merge->entries[0]->run),
		.verbose = options->common.verbose,
		.color = merge->color,
		.max_stack = options->common.max_stack,
		.advice = advice,
	};
	FILE *out = NULL;

	for (size_t i = 0; commands && i < attempt->count; i++)
		commands[i] = merge->entries[i]->command_line;
	ss_sandbox_enter(attempt->sandbox, SS_SANDBOX_OUTPUT);
	struct ss_error *error = commands ? ss_analysis_open(attempt->sandbox, &out) :
					    ss_error_no_memory();
	if (error)
		return error;
	if (*merge->separate)
		(void)fputs(options->common.format->separator, out);
	error = options->common.format->write_processes(&snapshots, &format_options, out);
	/* cppcheck-suppress returnDanglingLifetime; the error does not refer to the options */
	return ss_analysis_close(out, error);
}

/* Returns how many of the snapshots have anything missing. */
static size_t report_missing(const struct attempt *attempt)
{
	size_t missing = 0;

	for (size_t i = 0; i < attempt->count; i++) {
		const struct ss_snapshot *snapshot = attempt->snapshots[i];
		missing += ss_incomplete_count(snapshot) +
				   ss_selection_run_report(
					   &attempt->merge->entries[i]->run, snapshot) >
			   0;
	}
	if (!attempt->merge->processes->options->symbols.raw)
		ss_incomplete_print_modules(attempt->snapshots[attempt->count - 1]);
	return missing;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *sandbox)
{
	const struct merge *merge = data;
	__attribute__((cleanup(attempt_deinit))) struct attempt attempt = {
		.merge = merge,
		.sandbox = sandbox,
		.snapshots = calloc(merge->count, sizeof(struct ss_snapshot *)),
	};
	bool requested = false;
	struct ss_error *error = attempt.snapshots ? NULL : ss_error_no_memory();

	for (size_t i = 0; i < merge->count && !error; i++)
		error = interpret(&attempt, merge->entries[i]);
	if (!error)
		error = ss_file_requests_send(&merge->requests, sandbox, &requested);
	if (error || requested)
		return error;
	error = print(&attempt);
	if (!error)
		ss_sandbox_set_value(sandbox, report_missing(&attempt));
	return error;
}

/* In the caller ------------------------------------------------------------- */

static void answer(void *data, const void *bytes, size_t size)
{
	struct merge *merge = data;

	ss_file_requests_answer(&merge->requests, bytes, size);
}

static struct ss_snap_analysis *current_analysis(const struct merge *merge)
{
	uint32_t current = *merge->current;

	return current < merge->count ? &merge->entries[current]->job.analysis : NULL;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_snap_analysis *analysis = current_analysis(data);

	return analysis && analysis->read ?
		       analysis->read(analysis->complete_data, address, bytes, size) :
		       0;
}

static bool check_thread(void *data, pid_t tid)
{
	const struct ss_snap_analysis *analysis = current_analysis(data);

	return analysis && analysis->check &&
	       analysis->check(analysis->complete_data, tid);
}

/* Each apart, so that what is wrong with one does not concern the others. */
static struct ss_error *print_apart(const struct merge *merge)
{
	struct ss_snap_processes *processes = merge->processes;

	for (size_t i = 0; i < merge->count; i++) {
		struct ss_snap_analysis *analysis = &merge->entries[i]->job.analysis;
		bool missing = false;
		analysis->probe = false;
		analysis->settled = true;
		analysis->separate = *merge->separate;
		_cleanup_error_ struct ss_error *error =
			ss_snap_analysis_run(analysis, &missing);
		if (error && ss_error_code(error) == SS_ERROR_SYSTEM)
			return take_ptr(error);
		if (error)
			ss_failure_print(error);
		else
			*merge->separate = true;
		processes->shown += !error && !merge->entries[i]->job.listing;
		processes->missing += error || missing;
	}
	return NULL;
}

static struct ss_error *print_merged(struct merge *merge, bool *ret)
{
	struct ss_snap_processes *processes = merge->processes;
	const struct ss_options *options = processes->options;
	const struct ss_analysis_owner *owner = &merge->entries[0]->job.analysis.owner;
	struct ss_session_options session;
	struct ss_analysis sandboxed = {
		.work = work,
		.data = merge,
		.color = merge->color,
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	ss_analysis_configure(&sandboxed, &session, options, owner, merge->count,
			      &merge->requests);
	sandboxed.options.first_level = options->symbols.raw ? SS_SANDBOX_RAW :
							       SS_SANDBOX_NAMES;
	sandboxed.options.last_level = SS_SANDBOX_RAW;
	sandboxed.options.keep_modules = true;
	sandboxed.options.answer = answer;
	sandboxed.options.read = read_memory;
	sandboxed.options.check = check_thread;
	for (size_t i = 0; i < merge->count; i++)
		ss_analysis_attach(options, owner,
				   merge->entries[i]->job.analysis.capture);
	_cleanup_error_ struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	*ret = !error && result->failure_count == 0;
	if (!*ret)
		return NULL;
	error = ss_analysis_copy(&sandboxed, result, processes->output);
	if (error)
		return take_ptr(error);
	*merge->separate = true;
	for (size_t i = 0; i < merge->count; i++)
		processes->shown += !merge->entries[i]->job.listing;
	processes->missing += (size_t)SS_MIN(result->value, (uint64_t)merge->count);
	return NULL;
}

static struct ss_error *show(struct merge *merge)
{
	void *shared = mmap(NULL, sizeof(*merge->current), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool merged = false;
	struct ss_error *error = NULL;

	if (merge->count > 1 && shared != MAP_FAILED) {
		merge->current = shared;
		error = print_merged(merge, &merged);
	}
	if (shared != MAP_FAILED)
		(void)munmap(shared, sizeof(*merge->current));
	ss_file_requests_deinit(&merge->requests);
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
	for (size_t i = 0; i < batch->count; i++)
		ss_snap_job_deinit(&batch->entries[i].job);
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
		.phases = { .current = SS_PHASE_COUNT },
	};
	entry->job.analysis = (struct ss_snap_analysis){
		.options = processes->options,
		.requests.debuginfod = processes->debuginfod,
		.run = &entry->run,
		.phases = &entry->phases,
		.output = processes->output,
		.color = batch->color,
		.probe = true,
	};
	_cleanup_error_ struct ss_error *error =
		ss_snap_job_take(&entry->job, &entry->run);
	if (!error) {
		batch->count++;
		return true;
	}
	ss_failure_print(error);
	ss_snap_job_deinit(&entry->job);
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
			bytes += ss_capture_size(
				batch->entries[batch->count - 1].job.analysis.capture);
	}
	return next;
}

/* What the stacks lack is read in the order of the captures. */
static void complete(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		bool missing = false;
		/* After an error the stack stays incomplete, which is said when it is shown. */
		ss_error_free(
			ss_snap_analysis_run(&batch->entries[i].job.analysis, &missing));
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
	const struct ss_analysis_owner *x = &a->job.analysis.owner;
	const struct ss_analysis_owner *y = &b->job.analysis.owner;

	return x->known && y->known && x->uid == y->uid && x->gid == y->gid;
}

/* Shows the processes of each owner. */
static struct ss_error *show_all(struct batch *batch)
{
	_cleanup_free_ struct entry **entries =
		calloc(batch->count + 1, sizeof(struct entry *));
	_cleanup_free_ bool *done = calloc(batch->count + 1, sizeof(*done));
	struct ss_error *error = entries && done ? NULL : ss_error_no_memory();

	for (size_t i = 0; i < batch->count && !error; i++) {
		struct merge merge = {
			.processes = batch->processes,
			.entries = entries,
			.separate = &batch->separate,
			.color = batch->color,
			.privileged = geteuid() == 0,
			.requests.debuginfod = batch->processes->debuginfod,
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
