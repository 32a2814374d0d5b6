#include "cli/reading.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/need.h"
#include "view/label.h"

const char *const ss_reading_steps[SS_READING_STEPS] = {
	[SS_READING_UNWIND] = "unwinding",
	[SS_READING_SYMBOLIZE] = "looking up names",
	[SS_READING_DIAGNOSE] = "finding out what threads wait for",
	[SS_READING_PRINT] = "printing",
};

SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)

void ss_reading_deinit(struct ss_reading *reading)
{
	for (size_t i = 0; i < reading->death_count; i++)
		free(reading->deaths[i].how);
	ss_session_free(reading->session);
	ss_sandbox_board_free(reading->board);
}

static void write_death(const struct ss_death *death, const struct ss_snapshot *snapshot,
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

static const char *consequence(const struct ss_reading *reading)
{
	switch (reading->level) {
	case SS_LEVEL_NAMES:
		return "";
	case SS_LEVEL_RAW:
		return reading->job->options->raw ? "" : "; there are no names";
	default:
		return "; only the place where each thread stood is known";
	}
}

/* One line of what went wrong, or NULL. */
static char *problem_text(const struct ss_reading *reading,
			  const struct ss_snapshot *snapshot)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = reading->death_count ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	for (size_t i = 0; i < reading->death_count; i++) {
		(void)fputs(i ? "; " : "", out);
		write_death(&reading->deaths[i], snapshot, out);
	}
	(void)fputs(consequence(reading), out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static void note_step(struct ss_sandbox_board *board, enum ss_reading_step step)
{
	board->module = -1;
	board->step = step;
}

static struct ss_error *unwind(const struct ss_reading *reading, struct ss_snapshot **ret)
{
	const struct ss_interpretation *job = reading->job;
	struct ss_unwind_options options = {
		.size = sizeof(options),
		.max_frames = job->options->max_frames,
	};

	ss_phases_enter(job->phases, SS_PHASE_UNWIND);
	if (reading->level == SS_LEVEL_PLACES) {
		options.max_frames = 1;
		options.frames_reason = "it could not be unwound";
	}
	return ss_capture_unwind(job->capture, reading->session, &options, ret);
}

/* What is recorded has no names: here they tell what locks are. */
static unsigned symbolize_flags(const struct ss_options *options)
{
	return options->renderer->single ? SS_NO_SOURCE | SS_NO_INLINES :
					   options->symbolize_flags;
}

static struct ss_error *diagnose(const struct ss_reading *reading,
				 struct ss_snapshot *snapshot)
{
	const struct ss_interpretation *job = reading->job;
	struct ss_error *error = NULL;

	if (reading->level == SS_LEVEL_NAMES)
		error = ss_snapshot_follow(snapshot, job->capture, reading->session,
					   job->options->symbolize_flags);
	return error ? error : ss_snapshot_diagnose(snapshot, 0);
}

static struct ss_error *take(const struct ss_reading *reading, bool may_ask,
			     struct ss_sandbox_board *board, struct ss_snapshot **ret)
{
	const struct ss_options *options = reading->job->options;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;

	note_step(board, SS_READING_UNWIND);
	struct ss_error *error = unwind(reading, &snapshot);
	if (!error && ss_snapshot_thread_count(snapshot) == 0)
		error = ss_error_new(SS_ERROR_NO_PROCESS,
				     "process %d has no threads any more",
				     reading->job->run->argument->pid);
	board->result[SS_READING_NEEDS] = !error && may_ask && ss_need_is_any(snapshot);
	if (board->result[SS_READING_NEEDS]) {
		*ret = take_ptr(snapshot);
		return NULL;
	}
	note_step(board, SS_READING_SYMBOLIZE);
	bool names = !options->renderer->single || !options->no_waits;
	if (!error && reading->level == SS_LEVEL_NAMES && names) {
		ss_phases_enter(reading->job->phases, SS_PHASE_SYMBOLIZE);
		error = ss_snapshot_symbolize(snapshot, reading->session,
					      symbolize_flags(options));
	}
	note_step(board, SS_READING_DIAGNOSE);
	if (!error && reading->level != SS_LEVEL_PLACES && !reading->without_waits &&
	    !options->no_waits) {
		ss_phases_enter(reading->job->phases, SS_PHASE_DIAGNOSE);
		error = diagnose(reading, snapshot);
	}
	if (error)
		return error;
	*ret = take_ptr(snapshot);
	return NULL;
}

static struct ss_error *print(const struct ss_reading *reading, const char *problem,
			      const struct ss_snapshot *snapshot, FILE *out)
{
	const struct ss_options *options = reading->job->options;
	const struct ss_renderer *renderer = options->renderer;
	const struct ss_render_options render_options = {
		.size = sizeof(render_options),
		.raw = reading->level != SS_LEVEL_NAMES,
		.no_group = options->no_group,
		.verbose = options->verbose,
		.color = reading->job->color,
		.max_stack = options->max_stack,
		.max_frames = options->max_frames,
		.problem = problem,
	};

	ss_phases_enter(reading->job->phases, SS_PHASE_RENDER);
	if (reading->job->separate && renderer->separator)
		(void)fputs(renderer->separator, out);
	/* cppcheck-suppress returnDanglingLifetime; an error is no part of the options */
	return renderer->render(snapshot, &render_options, out);
}

/* What is told beside; whether anything is missing. */
static bool tell(const struct ss_reading *reading, const char *problem,
		 const struct ss_snapshot *snapshot)
{
	const struct ss_interpretation *job = reading->job;
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

struct ss_error *ss_reading_work(void *data, struct ss_sandbox_board *board, FILE *out)
{
	const struct ss_reading *reading = data;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = take(reading, reading->may_ask, board, &snapshot);

	if (error)
		return error;
	if (board->result[SS_READING_NEEDS]) {
		ss_need_write(snapshot, out);
		return NULL;
	}
	_cleanup_free_ char *problem = problem_text(reading, snapshot);
	note_step(board, SS_READING_PRINT);
	error = print(reading, problem, snapshot, out);
	if (!error)
		board->result[SS_READING_MISSING] = tell(reading, problem, snapshot);
	return error;
}

struct ss_error *ss_reading_work_here(const struct ss_reading *reading, bool *ret_missing)
{
	struct ss_output *output = reading->job->output;
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = take(reading, false, reading->board, &snapshot);

	if (error)
		return error;
	_cleanup_free_ char *problem = problem_text(reading, snapshot);
	error = print(reading, problem, snapshot, ss_output_file(output));
	if (!error)
		error = ss_output_flush(output);
	if (!error)
		*ret_missing = tell(reading, problem, snapshot);
	return error;
}
