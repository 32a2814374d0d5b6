/*
 * stacksnap [snap] [OPTIONS] PID[/TID,TID...]...: one snapshot of each process.
 */
#include <argp.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/snap_analysis.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/phases.h"
#include "cli/target_options.h"
#include "cli/usage.h"
#include "cli/watchdog.h"

/* Registers may be needed only after more of a stack was copied. */
enum { STOPS = 2 };

struct snap {
	struct ss_options options;
	struct ss_target_options targets;
	struct ss_output *output;	  /* for all targets, or for the current one */
	struct ss_debuginfod *debuginfod; /* or NULL */
	size_t printed;			  /* targets */
	size_t shown;			  /* targets with stacks */
	size_t missing;			  /* targets with anything missing */
};

static void snap_deinit(struct snap *snap)
{
	ss_target_options_deinit(&snap->targets);
	ss_output_close(snap->output);
	ss_debuginfod_free(snap->debuginfod);
	ss_options_deinit(&snap->options);
}

/* The snapshot of one target. */
struct job {
	struct ss_snap_analysis analysis;
	struct ss_target *target;
	struct ss_capture_options options;
	struct ss_gather_plan plan; /* for JIT code */
	bool listing; /* capturing was refused: only names and states of threads */
};

static void job_deinit(struct job *job)
{
	ss_snap_analysis_deinit(&job->analysis);
	ss_target_close(job->target);
}

/* After a failure, for instance because threads have ended, their stacks stay incomplete. */
static void warn(const struct job *job, struct ss_error *error)
{
	if (error && job->analysis.options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
	ss_error_free(error);
}

/* Stops the threads whose registers are requested. Returns whether there are any. */
static bool read_registers(struct job *job, const struct ss_stack_request *requests,
			   size_t count)
{
	_cleanup_free_ pid_t *tids = calloc(count + 1, sizeof(*tids));
	size_t stops = 0;

	for (size_t i = 0; tids && i < count; i++) {
		if (requests[i].address == 0)
			tids[stops++] = requests[i].tid;
	}
	if (stops == 0 || job->analysis.stops == 0)
		return false;
	ss_watchdog_begin(job->analysis.run->argument->pid, job->options.timeout_ms);
	warn(job, ss_capture_complete(job->analysis.capture, job->target, &job->options,
				      tids, stops));
	ss_watchdog_end();
	return true;
}

static void add_related(struct job *job)
{
	const struct ss_snap_analysis *analysis = &job->analysis;

	if (!analysis->options->common.format->unsymbolized &&
	    !analysis->options->no_waits)
		ss_capture_add_related(analysis->capture, job->target);
}

/* Captures again, with the plan. If that fails, the first capture stays. */
static bool capture_again(struct job *job)
{
	struct ss_snap_analysis *analysis = &job->analysis;
	struct ss_capture *capture = NULL;

	job->options.plan = &job->plan;
	ss_watchdog_begin(analysis->run->argument->pid, job->options.timeout_ms);
	struct ss_error *error = ss_capture_take(job->target, &job->options, &capture);
	ss_watchdog_end();
	job->options.plan = NULL;
	warn(job, error);
	if (!capture)
		return false;
	ss_capture_free(analysis->capture);
	analysis->capture = capture;
	add_related(job);
	return true;
}

/* What JIT compilers registered is read without a stop first: it is needed together with
   the stacks only if there is something. */
static bool use_plan(struct job *job, const struct ss_snap_request *request)
{
	job->plan = request->plan;
	if (request->jit == SS_JIT_CAPTURE)
		return job->options.mode != SS_MODE_NO_STOP && capture_again(job);
	struct ss_error *error =
		ss_capture_gather(job->analysis.capture, job->target, &job->plan);
	bool done = !error;
	warn(job, error);
	return done;
}

static bool complete_stacks(struct job *job, const struct ss_snap_request *request)
{
	size_t grown = 0;
	bool stopped = read_registers(job, request->stacks, request->count);

	warn(job, ss_capture_extend(job->analysis.capture, job->target, &job->options,
				    request->stacks, request->count, &grown));
	return stopped || grown > 0;
}

static bool complete(void *data, const struct ss_snap_request *request)
{
	struct job *job = data;

	ss_phases_enter(job->analysis.phases, SS_PHASE_CAPTURE);
	bool changed = request->jit != SS_JIT_NONE ? use_plan(job, request) :
						     complete_stacks(job, request);
	ss_phases_enter(job->analysis.phases, SS_PHASE_COUNT);
	return changed;
}

/* If access to the process was refused, captures names and states of its threads instead. */
static struct ss_error *list_threads(struct job *job, struct ss_error *refusal)
{
	_cleanup_error_ struct ss_error *owned = refusal;
	enum ss_error_code code = ss_error_code(refusal);

	if (code != SS_ERROR_DENIED && code != SS_ERROR_TRACED)
		return take_ptr(owned);
	ss_target_close(take_ptr(job->target));
	_cleanup_error_ struct ss_error *error =
		ss_target_open_listing(job->analysis.run->argument->pid, &job->target);
	if (!error)
		error = ss_capture_take(job->target, &job->options,
					&job->analysis.capture);
	if (error)
		return take_ptr(owned);
	ss_failure_print(refusal);
	job->listing = true;
	return NULL;
}

static struct ss_error *take(struct job *job, struct ss_selection_run *run)
{
	struct ss_snap_analysis *analysis = &job->analysis;
	const struct ss_options *options = analysis->options;

	job->options = ss_options_capture(options);
	if (ss_selection_run_is_active(run)) {
		job->options.filter = ss_selection_run_filter;
		job->options.filter_data = run;
	}
	ss_phases_enter(analysis->phases, SS_PHASE_OPEN);
	struct ss_error *error = ss_target_open(run->argument->pid, &job->target);
	if (!error)
		analysis->owner = ss_analysis_owner_of(job->target);
	ss_phases_enter(analysis->phases, SS_PHASE_CAPTURE);
	if (!error)
		error = ss_capture_take(job->target, &job->options, &analysis->capture);
	if (error)
		return list_threads(job, error);
	add_related(job);
	analysis->complete = complete;
	analysis->complete_data = job;
	analysis->stops = options->mode == SS_MODE_AUTO ? STOPS : 0;
	return NULL;
}

/* If the selection matches no thread, this is the error, even after another failure. */
static struct ss_error *take_selected(struct job *job, struct ss_selection_run *run)
{
	pid_t pid = run->argument->pid;

	ss_watchdog_begin(pid, job->analysis.options->timeout_ms);
	_cleanup_error_ struct ss_error *error = take(job, run);
	ss_watchdog_end();
	if (ss_selection_run_is_empty(run))
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "the selection matches no thread of process %d",
				     pid),
			"stacksnap %d shows all threads", pid);
	return take_ptr(error);
}

static struct ss_error *show(struct snap *snap, struct ss_selection_run *run)
{
	struct ss_phases phases = { .current = SS_PHASE_COUNT };
	_cleanup_(job_deinit) struct job job = {
		.analysis = {
			.options = &snap->options,
			.requests.debuginfod = snap->debuginfod,
			.run = run,
			.phases = &phases,
			.output = snap->output,
			.separate = snap->printed > 0 &&
				    !ss_output_is_per_target(snap->options.common.output),
			.color = ss_options_want_color(&snap->options.common),
		},
	};
	bool missing = false;

	struct ss_error *error = take_selected(&job, run);
	if (!error)
		error = ss_snap_analysis_run(&job.analysis, &missing);
	if (error)
		return error;
	snap->printed++;
	snap->shown += !job.listing;
	snap->missing += missing;
	return NULL;
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
		error = show(snap, &run);
	if (ss_output_is_per_target(pattern))
		ss_output_close(take_ptr(snap->output));
	return error;
}

static int run_targets(struct snap *snap)
{
	if (!ss_target_options_resolve(&snap->targets))
		return SS_STATUS_NOTHING;
	_cleanup_error_ struct ss_error *failure =
		snap->options.symbols.debuginfod ? ss_debuginfod_new(&snap->debuginfod) :
						   NULL;

	if (failure) {
		ss_failure_print(failure);
		return SS_STATUS_NOTHING;
	}
	for (size_t i = 0; i < snap->targets.targets.count; i++) {
		_cleanup_error_ struct ss_error *error =
			run_target(snap, &snap->targets.targets.items[i]);
		if (!error)
			continue;
		snap->missing++;
		ss_failure_print(error);
	}
	if (snap->shown == 0)
		return SS_STATUS_NOTHING;
	return snap->missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

static void check(const struct snap *snap, const struct argp_state *state)
{
	const struct ss_common_options *options = &snap->options.common;

	if (ss_target_options_count(&snap->targets) == 0)
		ss_usage_fail(state, "expected a pid or the name of a process");
	if (options->format->single && ss_target_options_count(&snap->targets) > 1 &&
	    !ss_output_is_per_target(options->output))
		ss_usage_fail(state,
			      "--format=%s holds one process per file: use -o FILE%%p",
			      options->format->name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct snap *snap = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &snap->options;
		state->child_inputs[1] = &snap->targets;
		return 0;
	case ARGP_KEY_ARG:
		ss_target_options_add(state, &snap->targets, arg);
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
	{ &ss_options_argp, 0, NULL, 0 },
	{ &ss_target_argp, 0, NULL, 0 },
	{},
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
