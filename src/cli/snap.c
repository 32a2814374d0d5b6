/*
 * stacksnap [snap] [OPTIONS] PID[/TID,TID...]...: one snapshot of each process.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/phases.h"

struct snap {
	struct ss_options options;
	SS_VECTOR(struct ss_target_argument) targets;
	struct ss_session *session;
	struct ss_output *output; /* of all targets, or of the current one */
	size_t shown;		  /* targets so far */
	size_t missing;		  /* targets, threads and parts of stacks */
};

SS_DEFINE_CLEANUP(struct ss_target, target, ss_target_close)
SS_DEFINE_CLEANUP(struct ss_capture, capture, ss_capture_free)
SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)

static void snap_deinit(struct snap *snap)
{
	for (size_t i = 0; i < snap->targets.count; i++)
		ss_target_argument_deinit(&snap->targets.items[i]);
	ss_vector_free(&snap->targets);
	ss_output_close(snap->output);
	ss_session_free(snap->session);
	ss_options_deinit(&snap->options);
}

static struct ss_error *capture_target(const struct ss_options *options,
				       struct ss_selection_run *run,
				       struct ss_phases *phases, struct ss_capture **ret)
{
	_cleanup_(target_cleanup) struct ss_target *target = NULL;
	const struct ss_capture_options capture_options = {
		.size = sizeof(capture_options),
		.mode = options->mode,
		.timeout_ms = options->timeout_ms,
		.max_stack = options->max_stack,
		.max_total = options->max_total,
		.max_frames = options->max_frames,
		.filter = ss_selection_run_is_active(run) ? ss_selection_run_filter :
							    NULL,
		.filter_data = run,
	};

	ss_phases_enter(phases, SS_PHASE_OPEN);
	struct ss_error *error = ss_target_open(run->argument->pid, &target);
	if (error)
		return error;
	ss_phases_enter(phases, SS_PHASE_CAPTURE);
	return ss_capture_take(target, &capture_options, ret);
}

/* The capture, which holds the copies of the stacks, is gone before names are
   looked up. */
static struct ss_error *unwind_target(struct snap *snap, struct ss_selection_run *run,
				      struct ss_phases *phases, struct ss_snapshot **ret)
{
	_cleanup_(capture_cleanup) struct ss_capture *capture = NULL;
	const struct ss_unwind_options unwind_options = {
		.size = sizeof(unwind_options),
		.max_frames = snap->options.max_frames,
	};
	struct ss_error *error = capture_target(&snap->options, run, phases, &capture);

	if (error)
		return error;
	ss_phases_enter(phases, SS_PHASE_UNWIND);
	return ss_capture_unwind(capture, snap->session, &unwind_options, ret);
}

static struct ss_error *take(struct snap *snap, struct ss_selection_run *run,
			     struct ss_phases *phases, struct ss_snapshot **ret)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_error *error = unwind_target(snap, run, phases, &snapshot);

	if (!error && !snap->options.raw && !snap->options.renderer->single) {
		ss_phases_enter(phases, SS_PHASE_SYMBOLIZE);
		error = ss_snapshot_symbolize(snapshot, snap->session,
					      snap->options.symbolize_flags);
	}
	if (!error) {
		ss_phases_enter(phases, SS_PHASE_DIAGNOSE);
		error = ss_snapshot_diagnose(snapshot, 0);
	}
	if (error)
		return error;
	*ret = take_ptr(snapshot);
	return NULL;
}

/* Where no thread was wanted that is the message, whatever became of it. */
static struct ss_error *take_wanted(struct snap *snap, struct ss_selection_run *run,
				    struct ss_phases *phases, struct ss_snapshot **ret)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	_cleanup_error_ struct ss_error *error = take(snap, run, phases, &snapshot);
	pid_t pid = run->argument->pid;

	if (ss_selection_run_is_empty(run))
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "no thread of process %d is one that was asked for",
				     pid),
			"all of them: stacksnap %d", pid);
	if (error)
		return take_ptr(error);
	if (ss_snapshot_thread_count(snapshot) == 0)
		return ss_error_new(SS_ERROR_NO_PROCESS,
				    "process %d has no threads any more", pid);
	*ret = take_ptr(snapshot);
	return NULL;
}

static bool wants_color(const struct ss_output *output)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return ss_output_is_terminal(output) && !(no_color && *no_color) && term &&
	       strcmp(term, "dumb") != 0;
}

static struct ss_error *show(struct snap *snap, const struct ss_snapshot *snapshot)
{
	const struct ss_options *options = &snap->options;
	const struct ss_renderer *renderer = options->renderer;
	FILE *out = ss_output_file(snap->output);
	const struct ss_render_options render_options = {
		.size = sizeof(render_options),
		.raw = options->raw,
		.no_group = options->no_group,
		.verbose = options->verbose,
		.color = wants_color(snap->output),
		.max_stack = options->max_stack,
		.max_frames = options->max_frames,
	};

	if (snap->shown > 0 && renderer->separator &&
	    !ss_output_is_per_target(options->output))
		(void)fputs(renderer->separator, out);
	struct ss_error *error = renderer->render(snapshot, &render_options, out);
	return error ? error : ss_output_flush(snap->output);
}

static void tell(struct snap *snap, const struct ss_selection_run *run,
		 const struct ss_phases *phases, const struct ss_snapshot *snapshot)
{
	snap->shown++;
	snap->missing += ss_selection_run_report(run, snapshot);
	snap->missing += ss_incomplete_count(snapshot);
	if (!snap->options.renderer->explains)
		ss_incomplete_print(snapshot, snap->options.max_stack);
	if (snap->options.verbose)
		ss_phases_print(phases, snapshot);
}

static struct ss_error *run_target(struct snap *snap,
				   const struct ss_target_argument *argument)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	struct ss_phases phases = { .current = SS_PHASE_COUNT };
	struct ss_selection_run run = { .selection = &snap->options.selection,
					.argument = argument };
	const char *pattern = snap->options.output;
	struct ss_error *error = NULL;

	if (!snap->output)
		error = ss_output_open(pattern, argument->pid, &snap->output);
	if (!error)
		error = take_wanted(snap, &run, &phases, &snapshot);
	ss_phases_enter(&phases, SS_PHASE_RENDER);
	if (!error)
		error = show(snap, snapshot);
	ss_phases_enter(&phases, SS_PHASE_COUNT);
	if (!error)
		tell(snap, &run, &phases, snapshot);
	if (ss_output_is_per_target(pattern))
		ss_output_close(take_ptr(snap->output));
	return error;
}

static struct ss_error *open_session(struct snap *snap)
{
	const struct ss_session_options session_options = {
		.size = sizeof(session_options),
		.debug_dir = snap->options.debug_dir,
		.sysroot = snap->options.sysroot,
	};

	return ss_session_new(&session_options, &snap->session);
}

static int run_targets(struct snap *snap)
{
	_cleanup_error_ struct ss_error *failure = open_session(snap);

	if (failure) {
		ss_failure_print(failure);
		return SS_STATUS_NOTHING;
	}
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
