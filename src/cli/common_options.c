#include "cli/common_options.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/duration.h"
#include "cli/number.h"
#include "cli/output.h"
#include "cli/usage.h"

enum { DEFAULT_MAX_FRAMES = 1024, KIB = 1 << 10 };

enum key {
	KEY_FORMAT = 'f',
	KEY_OUTPUT = 'o',
	KEY_MAX_FRAMES = 'n',
	KEY_VERBOSE = 'v',
	KEY_MAX_STACK = 0x580,
	KEY_COLOR,
};

static const struct argp_option format_table[] = {
	{ "format", KEY_FORMAT, "NAME", 0, "Output format (default: text)", 1 },
	{ "color", KEY_COLOR, "WHEN", 0,
	  "text: use colours auto, always or never; auto: on a terminal (default: auto)",
	  1 },
	{},
};

static const struct argp_option common_table[] = {
	{ NULL, 0, NULL, 0, "Output:", 1 },
	{ "output", KEY_OUTPUT, "FILE", 0, "Write to a new FILE", 0 },
	{ NULL, 0, NULL, 0, "Other:", -1 },
	{ "verbose", KEY_VERBOSE, NULL, 0, "Shorten no output, and print more details",
	  0 },
	{},
};

static const struct argp_option limits_table[] = {
	{ NULL, 0, NULL, 0, "Capture:", 4 },
	{ "max-frames", KEY_MAX_FRAMES, "N", 0,
	  "Limit the frames of each stack; 0: no limit (default: 1024)", 0 },
	{ "max-stack", KEY_MAX_STACK, "KIB", 0,
	  "Limit the copy of each stack (default: 256, and up to 8192 of deep stacks)",
	  0 },
	{},
};

void ss_options_check(const struct argp_state *state, struct ss_error *error)
{
	_cleanup_error_ struct ss_error *owned = error;

	if (owned)
		ss_usage_fail(state, "%s", ss_error_message(owned));
}

uint64_t ss_options_parse_number(const struct argp_state *state, const char *name,
				 const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = min;

	if (ss_number_parse(text, min, max, &value) != SS_NUMBER_OK)
		ss_usage_fail(state, "--%s: '%s' is not a number from %ju to %ju", name,
			      text, (uintmax_t)min, (uintmax_t)max);
	return value;
}

uint64_t ss_options_parse_duration(const struct argp_state *state, const char *name,
				   const char *text)
{
	uint64_t ns = 0;

	if (!ss_duration_parse(text, &ns))
		ss_usage_fail(state,
			      "--%s: '%s' is not a time such as 30, 500ms, 90s, 5m or 2h",
			      name, text);
	return ns;
}

static const struct ss_format *parse_format(const struct argp_state *state,
					    enum ss_format_input input, const char *name)
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
	ss_usage_fail(state, "--format: unknown format '%s'; known formats: %s", name,
		      known ? known : "others");
	return &ss_format_text;
}

static const char *const color_names[] = {
	[SS_COLOR_AUTO] = "auto",
	[SS_COLOR_ALWAYS] = "always",
	[SS_COLOR_NEVER] = "never",
};

const char *ss_options_color_name(size_t index)
{
	return index < SS_ARRAY_SIZE(color_names) ? color_names[index] : NULL;
}

enum ss_color ss_options_parse_color(const struct argp_state *state, const char *name)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(color_names); i++) {
		if (strcmp(color_names[i], name) == 0)
			return (enum ss_color)i;
	}
	ss_usage_fail(state, "--color: '%s' is not auto, always or never", name);
}

bool ss_options_want_color(const struct ss_common_options *options)
{
	if (options->color == SS_COLOR_AUTO)
		return ss_output_wants_color(options->output);
	return options->color == SS_COLOR_ALWAYS;
}

static const char *parse_output(const struct argp_state *state,
				const struct ss_common_options *options,
				const char *pattern)
{
	ss_options_check(state, ss_output_check(pattern));
	if (options->no_pid && ss_output_is_per_target(pattern))
		ss_usage_fail(state,
			      "--output: '%%p' cannot be used: recordings may have "
			      "several pids");
	return pattern;
}

static void check(const struct argp_state *state, const struct ss_common_options *options)
{
	if (options->format->binary && ss_output_is_stdout(options->output) &&
	    isatty(STDOUT_FILENO))
		ss_usage_fail(
			state,
			"--format=%s is binary and cannot be written to a terminal: "
			"use -o FILE",
			options->format->name);
}

static error_t parse_format_option(int key, char *arg, struct argp_state *state)
{
	struct ss_common_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		options->format = &ss_format_text;
		return 0;
	case KEY_FORMAT:
		options->format_name = arg;
		return 0;
	case KEY_COLOR:
		options->color = ss_options_parse_color(state, arg);
		return 0;
	case ARGP_KEY_END: /* other options may have changed the input */
		if (options->format_name)
			options->format =
				parse_format(state, options->input, options->format_name);
		check(state, options);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_common_option(int key, char *arg, struct argp_state *state)
{
	struct ss_common_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		options->output = options->default_output;
		return 0;
	case KEY_OUTPUT:
		options->output = parse_output(state, options, arg);
		return 0;
	case KEY_VERBOSE:
		options->verbose = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_limit(int key, char *arg, struct argp_state *state)
{
	struct ss_common_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		options->max_frames = DEFAULT_MAX_FRAMES;
		return 0;
	case KEY_MAX_FRAMES:
		options->max_frames = (unsigned)ss_options_parse_number(
			state, "max-frames", arg, 0, UINT_MAX);
		return 0;
	case KEY_MAX_STACK:
		options->max_stack =
			ss_options_parse_number(state, "max-stack", arg, 1, 1 << 30) *
			KIB;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Adds what differs between commands. */
static char *describe_output(int key, const char *text, void *input)
{
	const struct ss_common_options *options = input;
	char *help = NULL;

	if (key != KEY_OUTPUT || !options)
		return text ? strdup(text) : NULL;
	if (asprintf(&help, "%s; %s (default: %s)", text,
		     options->no_pid ? "%t is the time" : "%p is the pid, %t the time",
		     options->default_output ? options->default_output :
					       "standard output") < 0)
		return NULL;
	return help;
}

const struct argp ss_format_argp = { .options = format_table,
				     .parser = parse_format_option };
const struct argp ss_common_argp = { .options = common_table,
				     .parser = parse_common_option,
				     .help_filter = describe_output };
const struct argp ss_limits_argp = { .options = limits_table, .parser = parse_limit };
