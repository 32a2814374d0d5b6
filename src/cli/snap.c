/*
 * stacksnap [snap] [OPTIONS] PID[/TID,TID...]...: one snapshot of each process.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/phases.h"
#include "cli/watchdog.h"

struct snap {
	struct ss_options options;
	SS_VECTOR(struct ss_target_argument) targets;
	struct ss_output *output; /* of all targets, or of the current one */
	size_t printed;		  /* targets so far */
	size_t shown;		  /* of these, with stacks */
	size_t missing;		  /* targets of which anything is */
};

SS_DEFINE_CLEANUP(struct ss_target, target, ss_target_close)

static void snap_deinit(struct snap *snap)
{
	for (size_t i = 0; i < snap->targets.count; i++)
		ss_target_argument_deinit(&snap->targets.items[i]);
	ss_vector_free(&snap->targets);
	ss_output_close(snap->output);
	ss_options_deinit(&snap->options);
}

static struct ss_error *open_target(struct ss_interpretation *job, struct ss_target **ret)
{
	_cleanup_(target_cleanup) struct ss_target *target = NULL;
	struct ss_error *error = ss_target_open(job->run->argument->pid, &target);

	if (error)
		return error;
	_cleanup_error_ struct ss_error *unknown =
		ss_target_owner(target, &job->uid, &job->gid);
	job->owner_known = !unknown;
	*ret = take_ptr(target);
	return NULL;
}

/* How a target is captured, and can be completed. */
struct taking {
	struct ss_interpretation job;
	struct ss_target *target;
	struct ss_capture_options options;
};

static void taking_deinit(struct taking *taking)
{
	ss_capture_free(taking->job.capture);
	ss_target_close(taking->target);
}

/* If that fails, as when the threads have ended, they stay as they are. */
static void complete(void *data, const pid_t *tids, size_t count)
{
	struct taking *taking = data;

	ss_phases_enter(taking->job.phases, SS_PHASE_CAPTURE);
	ss_watchdog_begin(taking->job.run->argument->pid, taking->options.timeout_ms);
	_cleanup_error_ struct ss_error *error = ss_capture_complete(
		taking->job.capture, taking->target, &taking->options, tids, count);
	ss_watchdog_end();
	ss_phases_enter(taking->job.phases, SS_PHASE_COUNT);
	if (error && taking->job.options->verbose)
		ss_failure_warn("%s", ss_error_message(error));
}

/* Of a process that may not be looked at: its threads, in place of their stacks. */
static struct ss_error *list_instead(struct taking *taking, struct ss_error *refusal)
{
	_cleanup_error_ struct ss_error *owned = refusal;
	enum ss_error_code code = ss_error_code(refusal);

	if (code != SS_ERROR_DENIED && code != SS_ERROR_TRACED)
		return take_ptr(owned);
	ss_target_close(take_ptr(taking->target));
	_cleanup_error_ struct ss_error *error =
		ss_target_open_listing(taking->job.run->argument->pid, &taking->target);
	if (!error)
		error = ss_capture_take(taking->target, &taking->options,
					&taking->job.capture);
	if (error)
		return take_ptr(owned);
	ss_failure_print(refusal);
	taking->job.listing = true;
	return NULL;
}

static struct ss_error *take(struct taking *taking, struct ss_selection_run *run)
{
	struct ss_interpretation *job = &taking->job;
	const struct ss_options *options = job->options;

	taking->options = (struct ss_capture_options){
		.size = sizeof(taking->options),
		.mode = options->mode,
		.timeout_ms = options->timeout_ms,
		.max_stack = options->max_stack,
		.max_total = options->max_total,
		.max_frames = options->max_frames,
		.no_waits = options->no_waits,
		.filter = ss_selection_run_is_active(run) ? ss_selection_run_filter :
							    NULL,
		.filter_data = run,
	};
	ss_phases_enter(job->phases, SS_PHASE_OPEN);
	struct ss_error *error = open_target(job, &taking->target);
	ss_phases_enter(job->phases, SS_PHASE_CAPTURE);
	if (!error)
		error = ss_capture_take(taking->target, &taking->options, &job->capture);
	if (error)
		return list_instead(taking, error);
	if (!options->renderer->single && !options->no_waits)
		ss_capture_follow(job->capture, taking->target);
	if (options->mode == SS_MODE_AUTO) {
		job->complete = complete;
		job->complete_data = taking;
	}
	return NULL;
}

/* Where no thread was wanted that is the message, whatever became of it. */
static struct ss_error *take_wanted(struct taking *taking, struct ss_selection_run *run)
{
	pid_t pid = run->argument->pid;

	ss_watchdog_begin(pid, taking->job.options->timeout_ms);
	_cleanup_error_ struct ss_error *error = take(taking, run);
	ss_watchdog_end();
	if (ss_selection_run_is_empty(run))
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "no thread of process %d is one that was asked for",
				     pid),
			"all of them: stacksnap %d", pid);
	return take_ptr(error);
}

static struct ss_error *show(struct snap *snap, struct ss_selection_run *run)
{
	struct ss_phases phases = { .current = SS_PHASE_COUNT };
	_cleanup_(taking_deinit) struct taking taking = {
		.job = {
			.options = &snap->options,
			.run = run,
			.phases = &phases,
			.output = snap->output,
			.separate = snap->printed > 0 &&
				    !ss_output_is_per_target(snap->options.output),
			.color = ss_output_wants_color(snap->output),
		},
	};
	bool missing = false;

	struct ss_error *error = take_wanted(&taking, run);
	if (!error)
		error = ss_interpret(&taking.job, &missing);
	if (error)
		return error;
	snap->printed++;
	snap->shown += !taking.job.listing;
	snap->missing += missing;
	return NULL;
}

static struct ss_error *run_target(struct snap *snap,
				   const struct ss_target_argument *argument)
{
	struct ss_selection_run run = { .selection = &snap->options.selection,
					.argument = argument };
	const char *pattern = snap->options.output;
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
	for (size_t i = 0; i < snap->targets.count; i++) {
		_cleanup_error_ struct ss_error *error =
			run_target(snap, &snap->targets.items[i]);
		if (!error)
			continue;
		snap->missing++;
		ss_failure_print(error);
	}
	if (snap->shown == 0)
		return SS_STATUS_NOTHING;
	return snap->missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

static struct ss_error *add_target(struct snap *snap, const char *text)
{
	struct ss_target_argument argument = {};
	struct ss_error *error = ss_target_argument_parse(text, &argument);

	if (error)
		return error;
	struct ss_target_argument *slot = ss_vector_push(&snap->targets);
	if (!slot) {
		ss_target_argument_deinit(&argument);
		return ss_error_no_memory();
	}
	*slot = argument;
	return NULL;
}

/* Bytes that are not text, of which a file holds one snapshot. */
static void check_single(const struct snap *snap, const struct argp_state *state)
{
	const struct ss_options *options = &snap->options;
	bool to_stdout = !options->output || strcmp(options->output, "-") == 0;

	if (!options->renderer->single)
		return;
	if (to_stdout && isatty(STDOUT_FILENO))
		argp_error(state, "a recording is not for a terminal: -o FILE");
	if (snap->targets.count > 1 && !ss_output_is_per_target(options->output))
		argp_error(state, "a recording is of one process: -o FILE%%p makes one "
				  "for each");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct snap *snap = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &snap->options;
		return 0;
	case ARGP_KEY_ARG:
		ss_options_check(state, add_target(snap, arg));
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no pid is given");
		return 0;
	case ARGP_KEY_END:
		check_single(snap, state);
		return 0;
	case '0' ... '9':
		argp_error(state, "a pid is not negative");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = { { &ss_options_argp, 0, NULL, 0 }, {} };

/* "-5" is read as an option: known here to be told what it is. */
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
	.args_doc = "PID[/TID,TID...]...",
	.doc = "Print the stacks of all threads of a running process, which is stopped "
	       "for a moment only.\v",
	.children = children,
	.help_filter = ss_command_help,
};

static int run(int argc, char **argv)
{
	_cleanup_(snap_deinit) struct snap snap = {};

	ss_options_init(&snap.options);
	error_t errnum = argp_parse(&argp, argc, argv, 0, NULL, &snap);
	if (errnum) {
		ss_failure_warn("%s", strerror(errnum));
		return SS_STATUS_NOTHING;
	}
	return run_targets(&snap);
}

const struct ss_command ss_command_snap = {
	.name = "snap",
	.summary = "one snapshot of each process, printed",
	.argp = &argp,
	.run = run,
};
