#include "cli/diff_analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/incomplete.h"
#include "report/diff.h"
#include "data/recording.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"
#include "stacksnap/record.h"

enum { SIDES = 2 };

/* An attempt. */
struct attempt {
	const struct ss_diff_analysis *analysis;
	const struct ss_sandbox_attempt *sandbox;
	struct ss_snapshot *snapshots[SIDES];
	const struct ss_wait **waits[SIDES];
	const char *files[SIDES];
	struct ss_recording *recordings[SIDES];
	bool missing; /* a part of a recording */
};

static void attempt_deinit(struct attempt *attempt)
{
	for (size_t i = 0; i < SIDES; i++) {
		ss_snapshot_free(attempt->snapshots[i]);
		ss_recording_close(attempt->recordings[i]);
		free(attempt->waits[i]);
	}
}

/* Recordings --------------------------------------------------------------- */

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

/* The waits of the threads of a snapshot that was recorded. */
static struct ss_error *find_waits(struct attempt *attempt, size_t side, pid_t pid)
{
	const struct ss_recording *recording = attempt->recordings[side];
	const struct ss_snapshot *snapshot = attempt->snapshots[side];
	size_t count = ss_snapshot_task_count(snapshot, SS_TASK_THREAD);
	const struct ss_wait **waits = calloc(count + 1, sizeof(const struct ss_wait *));

	if (!waits)
		return ss_error_no_memory();
	attempt->waits[side] = waits;
	for (size_t i = 0; i < ss_recording_wait_count(recording); i++) {
		const struct ss_recorded_wait *wait = ss_recording_wait(recording, i);
		const struct ss_recorded_thread *recorded =
			ss_recording_thread(recording, wait->thread);
		const struct ss_task *thread =
			ss_recording_process(recording, recorded->process)->pid == pid ?
				ss_snapshot_find_thread(snapshot, recorded->tid) :
				NULL;
		if (thread)
			waits[thread - ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)] =
				&wait->wait;
	}
	return NULL;
}

static struct ss_error *open_recording(struct attempt *attempt, size_t side,
				       const struct ss_report_file *file)
{
	const struct ss_sandbox_attempt *sandbox = attempt->sandbox;
	const struct ss_recording_part part = { file->offset, file->size, 0 };
	_cleanup_close_ int fd =
		ss_report_files_duplicate(&attempt->analysis->files, file);
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
		       ss_recording_symbolize(attempt->recordings[side], sandbox->session,
					      attempt->analysis->options->symbols.flags) :
		       NULL;
}

static struct ss_error *read_side(struct attempt *attempt, size_t side)
{
	const struct ss_report_files *files = &attempt->analysis->files;
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
	error = ss_recording_snapshot(recording, moment.tick, moment.process,
				      &attempt->snapshots[side]);
	if (!error && last)
		error = find_waits(attempt, side,
				   ss_recording_process(recording, moment.process)->pid);
	return error;
}

/* Output ------------------------------------------------------------------- */

static struct ss_diff_side side_of(const struct attempt *attempt, size_t side)
{
	return (struct ss_diff_side){
		.snapshot = attempt->snapshots[side],
		.waits = attempt->waits[side],
		.file = attempt->files[side],
	};
}

static struct ss_error *print(const struct attempt *attempt, const char *problem)
{
	const struct ss_options *options = attempt->analysis->options;
	bool names = attempt->sandbox->level == SS_SANDBOX_NAMES;
	bool text = options->common.format == &ss_format_text;
	const struct ss_diff_input input = {
		.before = side_of(attempt, 0),
		.after = side_of(attempt, 1),
	};
	_cleanup_free_ char *advice =
		text && names ?
			ss_analysis_advice(attempt->sandbox, attempt->snapshots[1],
					   options, attempt->analysis->privileged) :
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
	struct ss_error *error = ss_analysis_open(attempt->sandbox, &out);
	if (error)
		return error;
	error = options->common.format->write_diff(&input, &format_options, out);
	/* cppcheck-suppress returnDanglingLifetime; the error does not refer to the options */
	return ss_analysis_close(out, error);
}

static bool report_missing(const struct attempt *attempt, const char *problem)
{
	size_t incomplete = 0;

	for (size_t i = 0; i < SIDES; i++)
		incomplete += ss_incomplete_count(attempt->snapshots[i]);
	if (problem)
		ss_failure_warn("%s", problem);
	if (incomplete)
		ss_failure_warn("%zu stacks are incomplete%s", incomplete,
				attempt->analysis->options->common.verbose ?
					"" :
					" (-v shows them)");
	return incomplete > 0 || problem || attempt->missing;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *sandbox)
{
	const struct ss_diff_analysis *analysis = data;
	__attribute__((cleanup(attempt_deinit))) struct attempt attempt = {
		.analysis = analysis, .sandbox = sandbox
	};
	struct ss_error *error = NULL;
	bool requested = false;

	for (size_t i = 0; i < SIDES && !error; i++)
		error = read_side(&attempt, i);
	if (!error)
		error = ss_file_requests_send(&analysis->requests, sandbox, &requested);
	if (error || requested)
		return error;
	_cleanup_free_ char *problem = ss_interpret_problem(
		sandbox->failures, sandbox->failure_count, sandbox->level,
		sandbox->no_waits, analysis->options->symbols.raw, NULL, NULL);
	error = print(&attempt, problem);
	if (!error)
		ss_sandbox_set_value(sandbox, report_missing(&attempt, problem));
	return error;
}

/* In the caller ------------------------------------------------------------- */

static void answer(void *data, const void *bytes, size_t size)
{
	struct ss_diff_analysis *analysis = data;

	ss_file_requests_answer(&analysis->requests, bytes, size);
}

struct ss_error *ss_diff_analysis_run(struct ss_diff_analysis *analysis, bool *ret)
{
	const struct ss_options *options = analysis->options;
	const struct ss_analysis_owner unknown = {};
	struct ss_session_options session;
	struct ss_analysis sandboxed = {
		.work = work,
		.data = analysis,
		.color = ss_options_want_color(&options->common),
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	analysis->privileged = geteuid() == 0;
	ss_analysis_configure(&sandboxed, &session, options, &unknown, SIDES,
			      &analysis->requests);
	/* Module indexes are those of one recording. */
	sandboxed.options.keep_modules = true;
	sandboxed.options.first_level = options->symbols.raw ? SS_SANDBOX_RAW :
							       SS_SANDBOX_NAMES;
	sandboxed.options.last_level = SS_SANDBOX_RAW;
	sandboxed.options.answer = answer;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	if (!error)
		error = ss_analysis_copy(&sandboxed, result, analysis->output);
	if (!error)
		*ret = result->value != 0;
	return error;
}

void ss_diff_analysis_deinit(struct ss_diff_analysis *analysis)
{
	ss_report_files_deinit(&analysis->files);
	ss_file_requests_deinit(&analysis->requests);
}
