#include "cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/completion.h"
#include "cli/failure.h"
#include "cli/usage.h"
#include "cli/wait_functions.h"
#include "report/names.h"
#include "data/cache.h"
#include "diagnose/wait_table.h"

enum {
	DEFAULT_INTERPRET_MS = 60000,
	GROUPS_MAX = 1 << 20,
	MS_PER_S = 1000,
	MIB = 1 << 20,
};

enum key {
	KEY_VERSION = 'V',
	KEY_ALL = 'a',
	KEY_NO_GROUP = 0x100,
	KEY_NO_WAITS,
	KEY_GOROUTINES,
	KEY_NO_CACHE,
	KEY_WAIT_FUNCTIONS,
	KEY_TASKS,
	KEY_NATIVE,
	KEY_ENVIRONMENT,
	KEY_MODE,
	KEY_TIMEOUT,
	KEY_INTERPRET_TIMEOUT,
	KEY_MAX_TOTAL,
	KEY_COMPLETION,
};

static const struct argp_option interpret_table[] = {
	{ "all", KEY_ALL, NULL, 0,
	  "text: show idle threads, too (default: only their number, unless all are "
	  "idle)",
	  1 },
	{ "no-group", KEY_NO_GROUP, NULL, 0, "Do not merge threads with equal stacks",
	  1 },
	{ "native", KEY_NATIVE, NULL, 0,
	  "Show the native frames of interpreters, besides the functions that they "
	  "execute",
	  1 },
	{ "no-waits", KEY_NO_WAITS, NULL, 0, "Skip wait analysis", 1 },
	{ "goroutines", KEY_GOROUTINES, "N|all", 0,
	  "Go programs, text: show the N largest groups of goroutines with equal stacks; "
	  "0: do not read them (default: 20)",
	  1 },
	{ "tasks", KEY_TASKS, "N|all", 0,
	  "Python, text: show the N largest groups of asyncio's tasks with equal stacks; "
	  "0: do not read them (default: 20)",
	  1 },
	SS_WAIT_FUNCTIONS_OPTION(KEY_WAIT_FUNCTIONS, 1),
	{ "max-total", KEY_MAX_TOTAL, "MIB", 0,
	  "Limit the copy of all stacks (default: 256)", 4 },
	{ "interpret-timeout", KEY_INTERPRET_TIMEOUT, "S", 0,
	  "Limit the time for unwinding, symbolization and output (default: 60)", 4 },
	{},
};

static const struct argp_option minidump_table[] = {
	{ "environment", KEY_ENVIRONMENT, NULL, 0,
	  "minidump: include environment and command line, which may contain secrets",
	  1 },
	{},
};

static const struct argp_option table[] = {
	{ "no-cache", KEY_NO_CACHE, NULL, 0,
	  "Neither use nor keep names from earlier runs", 3 },
	{ "mode", KEY_MODE, "MODE", 0,
	  "Capture mode: auto, stop, no-stop or live (default: auto); live parses files "
	  "of the process with privileges: use it for trusted targets only",
	  4 },
	{ "timeout", KEY_TIMEOUT, "MS", 0,
	  "Limit the duration of the freeze (default: 1000)", 0 },
	{ "completion", KEY_COMPLETION, "SHELL", 0,
	  "Print a completion script for bash, zsh or fish", -1 },
	{ "version", KEY_VERSION, NULL, 0, "Print the version", 0 },
	{},
};

void ss_options_init(struct ss_options *options)
{
	*options = (struct ss_options){ .mode = SS_MODE_AUTO,
					.goroutines = SS_FORMAT_TASK_GROUPS,
					.tasks = SS_FORMAT_TASK_GROUPS,
					.interpret_ms = DEFAULT_INTERPRET_MS };
}

void ss_options_check_tasks(const struct argp_state *state,
			    const struct ss_options *options, const char *where)
{
	if (options->tasks_given && options->tasks)
		ss_usage_fail(state, "--tasks cannot be used %s: tasks are not read",
			      where);
}

void ss_options_deinit(struct ss_options *options)
{
	ss_selection_deinit(&options->selection);
	ss_row_arguments_deinit(&options->common.rows);
	ss_wait_table_free(options->waits);
	ss_cache_close(options->cache);
}

void ss_options_open_cache(struct ss_options *options)
{
	_cleanup_error_ struct ss_error *error = NULL;

	if (options->no_cache || options->symbols.raw)
		return;
	error = ss_cache_open(NULL, &options->cache);
	if (error && options->common.verbose)
		ss_failure_warn("names are not cached: %s", ss_error_message(error));
}

struct ss_capture_options ss_options_capture(const struct ss_options *options)
{
	return (struct ss_capture_options){
		.size = sizeof(struct ss_capture_options),
		.mode = options->mode,
		.timeout_ms = options->timeout_ms,
		.max_stack = options->common.max_stack,
		.max_total = options->max_total,
		.max_frames = options->common.max_frames,
		.no_waits = options->no_waits,
	};
}

static enum ss_mode parse_mode(const struct argp_state *state, const char *name)
{
	enum ss_mode mode = SS_MODE_STOP;

	if (!ss_mode_find(name, &mode))
		ss_usage_fail(
			state,
			"--mode: unknown mode '%s'; known modes: auto, stop, no-stop, "
			"live",
			name);
	return mode;
}

static void print_version(void)
{
	(void)printf("stacksnap %s\n", ss_version()); /* checked by check_stdout() */
	exit(0);
}

static void print_completion(const struct argp_state *state, const char *shell)
{
	if (!ss_completion_print(shell, stdout))
		ss_usage_fail(state, "--completion: unknown shell '%s'; known shells: %s",
			      shell, ss_completion_shells());
	exit(0);
}

static unsigned parse_unsigned(const struct argp_state *state, const char *name,
			       const char *text, unsigned max)
{
	return (unsigned)ss_options_parse_number(state, name, text, 1, max);
}

static error_t parse_interpret(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		ss_options_check(state, ss_wait_functions_load(&o->waits));
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->common;
		state->child_inputs[2] = &o->common;
		state->child_inputs[3] = &o->selection;
		state->child_inputs[4] = &o->symbols;
		return 0;
	case KEY_ALL:
		o->all = true;
		return 0;
	case KEY_NO_GROUP:
		o->no_group = true;
		return 0;
	case KEY_WAIT_FUNCTIONS:
		ss_options_check(state, ss_wait_functions_add(o->waits, arg));
		return 0;
	case KEY_NATIVE:
		o->native = true;
		return 0;
	case KEY_NO_WAITS:
		o->no_waits = true;
		return 0;
	case KEY_GOROUTINES:
		o->goroutines_given = true;
		o->goroutines = strcmp(arg, "all") == 0 ?
					SIZE_MAX :
					ss_options_parse_number(state, "goroutines", arg,
								0, GROUPS_MAX);
		return 0;
	case KEY_TASKS:
		o->tasks_given = true;
		o->tasks = strcmp(arg, "all") == 0 ?
				   SIZE_MAX :
				   ss_options_parse_number(state, "tasks", arg, 0,
							   GROUPS_MAX);
		return 0;
	case KEY_INTERPRET_TIMEOUT:
		o->interpret_ms =
			parse_unsigned(state, "interpret-timeout", arg, 24 * 3600) *
			MS_PER_S;
		return 0;
	case KEY_MAX_TOTAL:
		o->max_total =
			(size_t)parse_unsigned(state, "max-total", arg, 1 << 20) * MIB;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_minidump(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	(void)arg;
	if (key != KEY_ENVIRONMENT)
		return ARGP_ERR_UNKNOWN;
	o->environment = true;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = o;
		return 0;
	case KEY_NO_CACHE:
		o->no_cache = true;
		return 0;
	case KEY_MODE:
		o->mode = parse_mode(state, arg);
		return 0;
	case KEY_TIMEOUT:
		o->timeout_ms = parse_unsigned(state, "timeout", arg, 3600 * MS_PER_S);
		return 0;
	case KEY_COMPLETION:
		print_completion(state, arg);
		return 0;
	case KEY_VERSION:
		print_version();
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* diff compares recordings, too. */
static char *describe_runtimes(int key, const char *text, void *input)
{
	const struct ss_options *options = input;
	bool diff = options && options->common.input == SS_FORMAT_DIFF;

	if (diff && key == KEY_NATIVE)
		return strdup(
			"Show the native frames of interpreters, too; cannot be used "
			"with recordings");
	return text ? strdup(text) : NULL;
}

static const struct argp_child interpret_children[] = {
	{ &ss_format_argp, 0, NULL, 0 },  { &ss_common_argp, 0, NULL, 0 },
	{ &ss_limits_argp, 0, NULL, 0 },  { &ss_selection_argp, 0, NULL, 0 },
	{ &ss_symbols_argp, 0, NULL, 0 }, {},
};

const struct argp ss_interpret_argp = {
	.options = interpret_table,
	.parser = parse_interpret,
	.children = interpret_children,
	.help_filter = describe_runtimes,
};

const struct argp ss_minidump_argp = { .options = minidump_table,
				       .parser = parse_minidump };

static const struct argp_child children[] = { { &ss_interpret_argp, 0, NULL, 0 }, {} };

const struct argp ss_options_argp = {
	.options = table,
	.parser = parse,
	.children = children,
};
