#include "cli/interpret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/relay.h"
#include "cli/sandbox.h"
#include "view/label.h"

/* Modules that are left out before names are given up altogether. */
enum { SKIPS_MAX = 3, DEATHS_MAX = SKIPS_MAX + 3 };

/* An attempt has half of the time that is left, and this at least. */
enum { SHARE_MIN_MS = 500 };

/* What is not of the interpreter's making: copies of stacks, images of modules that have
   no file. And what it may need: the debug information of a browser is 2 GiB. */
#define MEMORY_IMAGES ((uint64_t)256 << 20)
#define MEMORY_STACKS ((uint64_t)256 << 20)
#define MEMORY_MOST ((uint64_t)4 << 30)

/* JSON of 5,000 threads, 300 frames each. */
#define OUTPUT_MOST ((uint64_t)1 << 30)

enum step { STEP_UNWIND, STEP_SYMBOLIZE, STEP_DIAGNOSE, STEP_PRINT };

static const char *const steps[] = {
	[STEP_UNWIND] = "unwinding",
	[STEP_SYMBOLIZE] = "looking up names",
	[STEP_DIAGNOSE] = "finding out what threads wait for",
	[STEP_PRINT] = "printing",
};

struct death {
	char *how;
	int32_t module; /* that is left out since; -1: none */
};

/* How much is tried. */
enum level { LEVEL_NAMES, LEVEL_RAW, LEVEL_PLACES };

struct attempt {
	const struct ss_interpretation *job;
	enum level level;
	bool without_waits; /* no diagnosis */
	int32_t skips[SKIPS_MAX];
	size_t skip_count;
	struct death deaths[DEATHS_MAX];
	size_t death_count;
};

SS_DEFINE_CLEANUP(struct ss_session, session, ss_session_free)
SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)

static void attempt_deinit(struct attempt *attempt)
{
	for (size_t i = 0; i < attempt->death_count; i++)
		free(attempt->deaths[i].how);
}

/* What was done, and what is missing for it. Runs in the sandbox, too ---- */

static void write_death(const struct death *death, const struct ss_snapshot *snapshot,
			FILE *out)
{
	bool known = death->module >= 0 &&
		     (size_t)death->module < ss_snapshot_module_count(snapshot);
	size_t index = known ? (size_t)death->module : 0;

	if (known)
		(void)fprintf(out, "what reads %s %s; it was left out",
			      ss_label_base(ss_snapshot_module(snapshot, index)->path),
			      death->how);
	else
		(void)fprintf(out, "what interprets the copy %s", death->how);
}

static const char *consequence(const struct attempt *attempt)
{
	switch (attempt->level) {
	case LEVEL_NAMES:
		return "";
	case LEVEL_RAW:
		return attempt->job->options->raw ? "" : "; there are no names";
	default:
		return "; only the place where each thread stood is known";
	}
}

/* One line of what went wrong, or NULL. */
static char *problem_text(const struct attempt *attempt,
			  const struct ss_snapshot *snapshot)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = attempt->death_count ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	for (size_t i = 0; i < attempt->death_count; i++) {
		(void)fputs(i ? "; " : "", out);
		write_death(&attempt->deaths[i], snapshot, out);
	}
	(void)fputs(consequence(attempt), out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void note_step(struct ss_sandbox_board *board, enum step step)
{
	board->module = -1;
	board->step = step;
}

static struct ss_error *unwind(const struct attempt *attempt, struct ss_session *session,
			       struct ss_snapshot **ret)
{
	const struct ss_interpretation *job = attempt->job;
	struct ss_unwind_options options = {
		.size = sizeof(options),
		.max_frames = job->options->max_frames,
	};

	ss_phases_enter(job->phases, SS_PHASE_UNWIND);
	if (attempt->level == LEVEL_PLACES) {
		options.max_frames = 1;
		options.frames_reason = "it could not be unwound";
	}
	return ss_capture_unwind(job->capture, session, &options, ret);
}

static struct ss_error *take(const struct attempt *attempt,
			     struct ss_sandbox_board *board, struct ss_snapshot **ret)
{
	const struct ss_options *options = attempt->job->options;
	const struct ss_session_options session_options = {
		.size = sizeof(session_options),
		.debug_dir = options->debug_dir,
		.sysroot = options->sysroot,
		.module_at = &board->module,
		.skip_modules = attempt->skips,
		.skip_count = attempt->skip_count,
	};
	_cleanup_(session_cleanup) struct ss_session *session = NULL;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = ss_session_new(&session_options, &session);

	note_step(board, STEP_UNWIND);
	if (!error)
		error = unwind(attempt, session, &snapshot);
	if (!error && ss_snapshot_thread_count(snapshot) == 0)
		error = ss_error_new(SS_ERROR_NO_PROCESS,
				     "process %d has no threads any more",
				     attempt->job->run->argument->pid);
	note_step(board, STEP_SYMBOLIZE);
	if (!error && attempt->level == LEVEL_NAMES && !options->renderer->single) {
		ss_phases_enter(attempt->job->phases, SS_PHASE_SYMBOLIZE);
		error = ss_snapshot_symbolize(snapshot, session,
					      options->symbolize_flags);
	}
	note_step(board, STEP_DIAGNOSE);
	if (!error && attempt->level != LEVEL_PLACES && !attempt->without_waits) {
		ss_phases_enter(attempt->job->phases, SS_PHASE_DIAGNOSE);
		error = ss_snapshot_diagnose(snapshot, 0);
	}
	if (error)
		return error;
	*ret = take_ptr(snapshot);
	return NULL;
}

static struct ss_error *print(const struct attempt *attempt, const char *problem,
			      const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_options *options = attempt->job->options;
	const struct ss_renderer *renderer = options->renderer;
	const struct ss_render_options render_options = {
		.size = sizeof(render_options),
		.raw = attempt->level != LEVEL_NAMES,
		.no_group = options->no_group,
		.verbose = options->verbose,
		.color = attempt->job->color,
		.max_stack = options->max_stack,
		.max_frames = options->max_frames,
		.problem = problem,
	};

	ss_phases_enter(attempt->job->phases, SS_PHASE_RENDER);
	if (attempt->job->separate && renderer->separator)
		(void)fputs(renderer->separator, out);
	return renderer->render(snapshot, &render_options, out);
}

/* What is told beside; whether anything is missing. */
static bool tell(const struct attempt *attempt, const char *problem,
		 const struct ss_snapshot *snapshot)
{
	const struct ss_interpretation *job = attempt->job;
	const struct ss_options *options = job->options;
	size_t missing = ss_selection_run_report(job->run, snapshot);

	ss_phases_enter(job->phases, SS_PHASE_COUNT);
	missing += ss_incomplete_count(snapshot);
	if (problem)
		ss_failure_warn("%d: %s", ss_snapshot_process(snapshot)->pid, problem);
	if (!options->renderer->explains)
		ss_incomplete_print(snapshot, options->max_stack);
	if (options->verbose)
		ss_phases_print(job->phases, snapshot);
	return missing > 0 || problem;
}

static struct ss_error *work(void *data, struct ss_sandbox_board *board, FILE *out)
{
	const struct attempt *attempt = data;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = take(attempt, board, &snapshot);

	if (error)
		return error;
	_cleanup_free_ char *problem = problem_text(attempt, snapshot);
	note_step(board, STEP_PRINT);
	error = print(attempt, problem, snapshot, out);
	if (!error)
		board->result[0] = tell(attempt, problem, snapshot);
	return error;
}

/* In this process: where there can be no other, or where nothing is left to do that
   could be fatal. */
static struct ss_error *work_here(const struct attempt *attempt, bool *ret_missing)
{
	struct ss_sandbox_board board = { .module = -1 };
	struct ss_output *output = attempt->job->output;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = take(attempt, &board, &snapshot);

	if (error)
		return error;
	_cleanup_free_ char *problem = problem_text(attempt, snapshot);
	error = print(attempt, problem, snapshot, ss_output_file(output));
	if (!error)
		error = ss_output_flush(output);
	if (!error)
		*ret_missing = tell(attempt, problem, snapshot);
	return error;
}

/* The sandbox, and what becomes of it ------------------------------------ */

static uint64_t memory_limit(const struct ss_options *options)
{
	uint64_t stacks = options->max_total ? options->max_total : MEMORY_STACKS;
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_size = sysconf(_SC_PAGESIZE);
	uint64_t most = MEMORY_MOST;

	if (pages > 0 && page_size > 0)
		most = SS_MIN(most, (uint64_t)pages * (uint64_t)page_size / 2);
	return stacks + MEMORY_IMAGES + most;
}

/* Files of --debug-dir and --sysroot may be there for the caller only. */
static bool may_change_ids(const struct ss_interpretation *job)
{
	return job->owner_known && !job->options->debug_dir && !job->options->sysroot;
}

struct ss_confinement ss_interpret_confinement(const struct ss_interpretation *job,
					       unsigned timeout_ms)
{
	return (struct ss_confinement){
		.change_ids = may_change_ids(job),
		.uid = job->uid,
		.gid = job->gid,
		.memory = memory_limit(job->options),
		.output = OUTPUT_MOST,
		.cpu_s = timeout_ms / 1000 + 1,
		.resolves_root = job->options->sysroot != NULL,
	};
}

static struct ss_error *run_sandbox(const struct attempt *attempt, unsigned share_ms,
				    struct ss_sandbox_outcome *ret)
{
	const struct ss_sandbox sandbox = {
		.work = work,
		.data = (void *)attempt,
		.steps = steps,
		.step_count = SS_ARRAY_SIZE(steps),
		.timeout_ms = share_ms,
		.confinement = ss_interpret_confinement(attempt->job, share_ms),
	};

	return ss_sandbox_run(&sandbox, ret);
}

static struct ss_error *hand_on_output(const struct ss_interpretation *job, int fd)
{
	FILE *out = ss_output_file(job->output);

	return job->options->renderer->single ? ss_relay_copy(fd, out) :
						ss_relay_write(fd, job->color, out);
}

static struct ss_error *hand_on(const struct ss_interpretation *job,
				struct ss_sandbox_outcome *outcome, bool *ret_missing)
{
	struct ss_error *error = take_ptr(outcome->error);

	if (!error)
		error = hand_on_output(job, outcome->output);
	if (!error)
		error = ss_output_flush(job->output);
	if (!error)
		error = ss_relay_write(outcome->messages, false, stderr);
	if (!error && job->options->verbose && outcome->board.refused)
		ss_failure_warn("the kernel refused a part of the sandbox for what "
				"interprets the copy");
	*ret_missing = outcome->board.result[0] != 0;
	return error;
}

static bool is_skipped(const struct attempt *attempt, int32_t module)
{
	for (size_t i = 0; i < attempt->skip_count; i++) {
		if (attempt->skips[i] == module)
			return true;
	}
	return false;
}

/* Decides what is tried after a death: without the module that was being read, if it
   is known and that was not tried before; without what threads wait for, if it was that;
   else less of everything. */
static void try_less(struct attempt *attempt, struct ss_sandbox_outcome *outcome)
{
	struct death *death = &attempt->deaths[attempt->death_count++];
	int32_t module = outcome->board.module;

	*death = (struct death){ .how = take_ptr(outcome->death), .module = -1 };
	if (module >= 0 && attempt->skip_count < SKIPS_MAX &&
	    !is_skipped(attempt, module)) {
		attempt->skips[attempt->skip_count++] = death->module = module;
	} else if (outcome->board.step == STEP_DIAGNOSE && !attempt->without_waits) {
		attempt->without_waits = true;
	} else {
		attempt->level++;
	}
}

struct ss_error *ss_interpret(const struct ss_interpretation *job, bool *ret_missing)
{
	_cleanup_(attempt_deinit) struct attempt attempt = {
		.job = job,
		.level = job->options->raw ? LEVEL_RAW : LEVEL_NAMES,
	};
	unsigned left_ms = job->options->interpret_ms;

	while (attempt.level < LEVEL_PLACES) {
		_cleanup_(ss_sandbox_outcome_deinit) struct ss_sandbox_outcome outcome =
			SS_SANDBOX_NO_OUTCOME;
		unsigned share_ms = SS_MAX(left_ms / 2, (unsigned)SHARE_MIN_MS);
		_cleanup_error_ struct ss_error *error =
			run_sandbox(&attempt, share_ms, &outcome);
		if (error) {
			if (job->options->verbose)
				ss_failure_warn("without a sandbox: %s",
						ss_error_message(error));
			/* Not here what was fatal there. */
			if (attempt.death_count)
				attempt.level = LEVEL_PLACES;
			break;
		}
		if (!outcome.death)
			return hand_on(job, &outcome, ret_missing);
		left_ms -= SS_MIN(left_ms, share_ms);
		try_less(&attempt, &outcome);
	}
	return work_here(&attempt, ret_missing);
}
