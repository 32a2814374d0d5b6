#include "cli/options.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "cli/completion.h"
#include "cli/number.h"
#include "cli/output.h"
#include "output/escape.h"
#include "output/mode.h"

enum { DEFAULT_MAX_FRAMES = 1024, DEFAULT_INTERPRET_MS = 60000, MS_PER_S = 1000 };
enum { KIB = 1 << 10, MIB = 1 << 20 };

enum key {
	KEY_FORMAT = 'f',
	KEY_OUTPUT = 'o',
	KEY_MAX_FRAMES = 'n',
	KEY_VERBOSE = 'v',
	KEY_VERSION = 'V',
	KEY_NO_GROUP = 0x100,
	KEY_NO_WAITS,
	KEY_MODE,
	KEY_TIMEOUT,
	KEY_INTERPRET_TIMEOUT,
	KEY_MAX_STACK,
	KEY_MAX_TOTAL,
	KEY_COMPLETION,
};

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Output:", 1 },
	{ "format", KEY_FORMAT, "NAME", 0, "Output format (default: text)", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0,
	  "Write to a new FILE; %p is the pid, %t the time (default: standard output)",
	  0 },
	{ "max-frames", KEY_MAX_FRAMES, "N", 0,
	  "Limit the frames of each thread; 0: no limit (default: 1024)", 0 },
	{ "no-group", KEY_NO_GROUP, NULL, 0, "Do not merge threads with equal stacks",
	  0 },
	{ "no-waits", KEY_NO_WAITS, NULL, 0, "Skip wait analysis", 0 },
	{ NULL, 0, NULL, 0, "Capture:", 4 },
	{ "mode", KEY_MODE, "MODE", 0,
	  "Capture mode: auto, stop, no-stop or live (default: auto); live parses files "
	  "of the process with privileges: use it for trusted targets only",
	  0 },
	{ "timeout", KEY_TIMEOUT, "MS", 0,
	  "Limit the duration of the freeze (default: 1000)", 0 },
	{ "max-stack", KEY_MAX_STACK, "KIB", 0,
	  "Limit the copy of each stack (default: 256)", 0 },
	{ "max-total", KEY_MAX_TOTAL, "MIB", 0,
	  "Limit the copy of all stacks (default: 256)", 0 },
	{ "interpret-timeout", KEY_INTERPRET_TIMEOUT, "S", 0,
	  "Limit the time for unwinding, symbolization and output (default: 60)", 0 },
	{ NULL, 0, NULL, 0, "Other:", -1 },
	{ "verbose", KEY_VERBOSE, NULL, 0,
	  "Shorten no output; print the duration of each phase", 0 },
	{ "completion", KEY_COMPLETION, "SHELL", 0,
	  "Print a completion script for bash, zsh or fish", 0 },
	{ "version", KEY_VERSION, NULL, 0, "Print the version", 0 },
	{},
};

void ss_options_init(struct ss_options *options)
{
	*options = (struct ss_options){ .size = sizeof(*options),
					.format = &ss_format_text,
					.mode = SS_MODE_AUTO,
					.max_frames = DEFAULT_MAX_FRAMES,
					.interpret_ms = DEFAULT_INTERPRET_MS };
}

void ss_options_deinit(struct ss_options *options)
{
	ss_selection_deinit(&options->selection);
}

void ss_options_check(const struct argp_state *state, struct ss_error *error)
{
	_cleanup_error_ struct ss_error *owned = error;

	if (owned)
		argp_error(state, "%s", ss_error_message(owned));
}

uint64_t ss_options_parse_number(const struct argp_state *state, const char *name,
				 const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = min;

	if (ss_number_parse(text, min, max, &value) != SS_NUMBER_OK)
		argp_error(state, "--%s: '%s' is not a number from %ju to %ju", name,
			   text, (uintmax_t)min, (uintmax_t)max);
	return value;
}

const struct ss_format *ss_options_parse_format(const struct argp_state *state,
						enum ss_format_input input,
						const char *name)
{
	const struct ss_format *format = ss_format_find(input, name);
	_cleanup_free_ char *known = NULL;
	size_t size = 0;

	if (format)
		return format;
	FILE *out = open_memstream(&known, &size);
	if (out) {
		ss_format_write_names(input, ", ", out);
		(void)fclose(out); /* if it fails, known stays NULL */
	}
	argp_error(state, "--format: unknown format '%s'; known formats: %s", name,
		   known ? known : "others");
	return &ss_format_text;
}

static enum ss_mode parse_mode(const struct argp_state *state, const char *name)
{
	enum ss_mode mode = SS_MODE_STOP;

	if (!ss_mode_find(name, &mode))
		argp_error(state,
			   "--mode: unknown mode '%s'; known modes: auto, stop, no-stop, "
			   "live",
			   name);
	return mode;
}

static const char *parse_output(const struct argp_state *state, const char *pattern)
{
	ss_options_check(state, ss_output_check(pattern));
	return pattern;
}

static void print_version(void)
{
	(void)printf("stacksnap %s\n", ss_version()); /* checked by check_stdout() */
	exit(0);
}

static void print_completion(const struct argp_state *state, const char *shell)
{
	if (!ss_completion_print(shell, stdout))
		argp_error(state, "--completion: unknown shell '%s'; known shells: %s",
			   shell, ss_completion_shells());
	exit(0);
}

/* Options that set a flag. */
static bool parse_flag(int key, struct ss_options *options)
{
	switch (key) {
	case KEY_NO_GROUP:
		return options->no_group = true;
	case KEY_NO_WAITS:
		return options->no_waits = true;
	case KEY_VERBOSE:
		return options->verbose = true;
	default:
		return false;
	}
}

static error_t parse_value(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	switch (key) {
	case KEY_FORMAT:
		o->format = ss_options_parse_format(state, o->format_input, arg);
		return 0;
	case KEY_OUTPUT:
		o->output = parse_output(state, arg);
		return 0;
	case KEY_MAX_FRAMES:
		o->max_frames = (unsigned)ss_options_parse_number(state, "max-frames",
								  arg, 0, UINT_MAX);
		return 0;
	case KEY_MODE:
		o->mode = parse_mode(state, arg);
		return 0;
	case KEY_TIMEOUT:
		o->timeout_ms = (unsigned)ss_options_parse_number(state, "timeout", arg,
								  1, 3600 * 1000);
		return 0;
	case KEY_INTERPRET_TIMEOUT:
		o->interpret_ms = (unsigned)ss_options_parse_number(
					  state, "interpret-timeout", arg, 1, 24 * 3600) *
				  MS_PER_S;
		return 0;
	case KEY_MAX_STACK:
		o->max_stack =
			ss_options_parse_number(state, "max-stack", arg, 1, 1 << 30) *
			KIB;
		return 0;
	case KEY_MAX_TOTAL:
		o->max_total =
			ss_options_parse_number(state, "max-total", arg, 1, 1 << 20) *
			MIB;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_options *options = state->input;

	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = &options->selection;
		state->child_inputs[1] = &options->symbols;
		return 0;
	}
	if (key == KEY_VERSION)
		print_version();
	if (key == KEY_COMPLETION)
		print_completion(state, arg);
	if (parse_flag(key, state->input))
		return 0;
	return parse_value(key, arg, state);
}

static const struct argp_child children[] = {
	{ &ss_selection_argp, 0, NULL, 0 },
	{ &ss_symbols_argp, 0, NULL, 0 },
	{},
};

const struct argp ss_options_argp = {
	.options = table,
	.parser = parse,
	.children = children,
};
