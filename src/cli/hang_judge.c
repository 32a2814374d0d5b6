#include "cli/hang_judge.h"

#include <stdlib.h>

#include "cli/relay.h"
#include "cli/sandbox.h"

SS_DEFINE_CLEANUP(struct ss_session, session, ss_session_free)
SS_DEFINE_CLEANUP(struct ss_progress, progress, ss_progress_free)

#define MEMORY_MOST ((uint64_t)4 << 30)
#define OUTPUT_MOST ((uint64_t)1 << 30)

enum step { STEP_UNWIND, STEP_SYMBOLIZE, STEP_DIAGNOSE, STEP_PRINT };

static const char *const steps[] = {
	[STEP_UNWIND] = "unwinding",
	[STEP_SYMBOLIZE] = "looking up names",
	[STEP_DIAGNOSE] = "finding out what threads wait for",
	[STEP_PRINT] = "printing",
};

/* The snapshots of all captures. */
struct series {
	struct ss_snapshot *snapshots[SS_HANG_CAPTURES];
	size_t count;
};

static void series_deinit(struct series *series)
{
	for (size_t i = 0; i < series->count; i++)
		ss_snapshot_free(series->snapshots[i]);
}

static struct ss_error *interpret(const struct ss_options *options,
				  struct ss_session *session,
				  const struct ss_capture *capture,
				  struct ss_sandbox_board *board, struct series *series)
{
	const struct ss_unwind_options unwind_options = {
		.size = sizeof(unwind_options),
		.max_frames = options->max_frames,
	};
	struct ss_snapshot **slot = &series->snapshots[series->count];

	board->step = STEP_UNWIND;
	struct ss_error *error =
		ss_capture_unwind(capture, session, &unwind_options, slot);
	if (error)
		return error;
	series->count++;
	board->step = STEP_SYMBOLIZE;
	return ss_snapshot_symbolize(*slot, session, options->symbolize_flags);
}

static struct ss_error *interpret_all(const struct ss_hang_judgement *job,
				      struct ss_sandbox_board *board,
				      struct series *series)
{
	const struct ss_options *options = job->options;
	const struct ss_session_options session_options = {
		.size = sizeof(session_options),
		.debug_dir = options->debug_dir,
		.sysroot = options->sysroot,
		.module_at = &board->module,
	};
	_cleanup_(session_cleanup) struct ss_session *session = NULL;
	struct ss_error *error = ss_session_new(&session_options, &session);

	for (size_t i = 0; i < job->look->count && !error; i++)
		error = interpret(options, session, job->look->captures[i], board,
				  series);
	if (error)
		return error;
	board->step = STEP_DIAGNOSE;
	error = ss_snapshot_follow(series->snapshots[series->count - 1],
				   job->look->captures[series->count - 1], session,
				   options->symbolize_flags);
	return error ? error :
		       ss_snapshot_diagnose(series->snapshots[series->count - 1], 0);
}

static struct ss_error *work(void *data, struct ss_sandbox_board *board, FILE *out)
{
	const struct ss_hang_judgement *job = data;
	__attribute__((cleanup(series_deinit))) struct series series = {};
	_cleanup_(progress_cleanup) struct ss_progress *progress = NULL;
	struct ss_error *error = interpret_all(job, board, &series);

	if (!error)
		error = ss_progress_new(
			job->look->before, job->look->after,
			(const struct ss_snapshot *const *)series.snapshots, series.count,
			&progress);
	if (error)
		return error;
	board->step = STEP_PRINT;
	board->result[0] = ss_progress_verdict(progress);
	if (ss_progress_verdict(progress) < job->quiet_below)
		return NULL;
	const struct ss_render_options render_options = {
		.size = sizeof(render_options),
		.verbose = job->options->verbose,
		.color = job->color,
	};
	/* cppcheck-suppress returnDanglingLifetime; an error is no part of them */
	/* cppcheck-suppress returnDanglingLifetime; an error is no part of the options */
	return job->writer(series.snapshots[series.count - 1], progress, &render_options,
			   out);
}

static struct ss_error *run_sandbox(const struct ss_hang_judgement *job,
				    struct ss_sandbox_outcome *ret)
{
	const struct ss_options *options = job->options;
	const struct ss_sandbox sandbox = {
		.work = work,
		.data = (void *)job,
		.steps = steps,
		.step_count = SS_ARRAY_SIZE(steps),
		.timeout_ms = options->interpret_ms,
		.confinement = {
			.change_ids = job->look->owner_known && !options->debug_dir &&
				      !options->sysroot,
			.uid = job->look->uid,
			.gid = job->look->gid,
			.memory = MEMORY_MOST,
			.output = OUTPUT_MOST,
			.cpu_s = options->interpret_ms / 1000 + 1,
			.resolves_root = options->sysroot != NULL,
		},
	};

	return ss_sandbox_run(&sandbox, ret);
}

struct ss_error *ss_hang_judge(const struct ss_hang_judgement *job, enum ss_verdict *ret)
{
	_cleanup_(ss_sandbox_outcome_deinit) struct ss_sandbox_outcome outcome =
		SS_SANDBOX_NO_OUTCOME;
	struct ss_error *error = run_sandbox(job, &outcome);

	if (!error && outcome.death)
		error = ss_error_new(SS_ERROR_SYSTEM, "what interprets the copies %s",
				     outcome.death);
	if (!error)
		error = take_ptr(outcome.error);
	/* What it says is not believed unseen. */
	if (!error && outcome.board.result[0] > SS_VERDICT_DEADLOCK)
		error = ss_error_new(SS_ERROR_SYSTEM, "there is no verdict %ju",
				     (uintmax_t)outcome.board.result[0]);
	if (!error)
		error = ss_relay_write(outcome.output, job->color,
				       ss_output_file(job->output));
	if (!error)
		error = ss_output_flush(job->output);
	if (!error)
		error = ss_relay_write(outcome.messages, false, stderr);
	if (!error)
		*ret = (enum ss_verdict)outcome.board.result[0];
	return error;
}
