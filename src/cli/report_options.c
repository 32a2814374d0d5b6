#include "cli/report_options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/usage.h"
#include "cli/wait_functions.h"
#include "diagnose/wait_table.h"

enum { DEFAULT_ROWS = 20, DEFAULT_THRESHOLD = 1 };

enum key {
	KEY_FROM = 0x400,
	KEY_TO,
	KEY_MODULE,
	KEY_THRESHOLD,
	KEY_ROWS,
	KEY_NATIVE,
	KEY_BY,
	KEY_DIFF,
	KEY_WAIT_FUNCTIONS,
	KEY_WEIGHT,
};

static const struct argp_option table[] = {
	{ "threshold", KEY_THRESHOLD, "PERCENT", 0,
	  "text: omit calls with a smaller share (default: 1)", 1 },
	{ "native", KEY_NATIVE, NULL, 0,
	  "Show the native frames of interpreters, besides the functions that they "
	  "execute",
	  1 },
	{ "by", KEY_BY, "WHAT", 0,
	  "Group stacks by host, by label (all labels), or by label:KEY", 1 },
	{ "diff", KEY_DIFF, NULL, 0,
	  "Compare two recordings or directories: text, json or folded", 1 },
	{ "rows", KEY_ROWS, "N", 0, "text: limit the lines of each table (default: 20)",
	  1 },
	{ "weight", KEY_WEIGHT, "WEIGHT", 0,
	  "Of traces: weigh stacks by hits, or by the time of scopes without inner ones "
	  "(default: hits)",
	  1 },
	SS_WAIT_FUNCTIONS_OPTION(KEY_WAIT_FUNCTIONS, 1),
	{ NULL, 0, NULL, 0, "Samples:", 5 },
	{ "from", KEY_FROM, "TIME", 0,
	  "Omit earlier samples; TIME is in seconds since the start, or [DATE ]HH:MM:SS",
	  0 },
	{ "to", KEY_TO, "TIME", 0, "Omit samples from TIME on", 0 },
	{ "module", KEY_MODULE, "REGEX", 0,
	  "Select stacks that pass through a module whose path matches; may be repeated",
	  0 },
	{},
};

void ss_report_arguments_init(struct ss_report_arguments *arguments)
{
	*arguments = (struct ss_report_arguments){ .common = { .input = SS_FORMAT_PROFILE,
							       .no_pid = true },
						   .threshold_percent = DEFAULT_THRESHOLD,
						   .rows = DEFAULT_ROWS };
}

void ss_report_arguments_deinit(struct ss_report_arguments *arguments)
{
	for (size_t i = 0; i < arguments->modules.count; i++)
		regfree(&arguments->modules.items[i]);
	ss_vector_free(&arguments->modules);
	ss_vector_free(&arguments->files);
	ss_selection_deinit(&arguments->selection);
	ss_wait_table_free(arguments->waits);
	ss_row_arguments_deinit(&arguments->labels);
}

static struct ss_time_argument parse_time(const struct argp_state *state,
					  const char *name, const char *text)
{
	struct ss_time_argument argument = {};

	if (!ss_time_argument_parse(text, &argument))
		ss_usage_fail(
			state,
			"--%s: '%s' is not a time: expected seconds since the start, "
			"HH:MM:SS, or "
			"YYYY-MM-DD HH:MM:SS",
			name, text);
	return argument;
}

static void add_module(const struct argp_state *state,
		       struct ss_report_arguments *arguments, const char *text)
{
	regex_t *pattern = ss_vector_push(&arguments->modules);
	char why[200] = "";

	if (!pattern) {
		ss_usage_fail(state, "out of memory");
		return;
	}
	int code = regcomp(pattern, text, REG_EXTENDED | REG_NOSUB);
	if (code == 0)
		return;
	(void)regerror(code, pattern, why, sizeof(why)); /* may be truncated */
	arguments->modules.count--;
	ss_usage_fail(state, "--module: '%s' is not a regular expression: %s", text, why);
}

static void add_file(const struct argp_state *state,
		     struct ss_report_arguments *arguments, const char *path)
{
	const char **slot = ss_vector_push(&arguments->files);

	if (!slot)
		ss_usage_fail(state, "out of memory");
	else
		*slot = path;
}

static void parse_by(const struct argp_state *state, struct ss_report_arguments *a,
		     const char *text)
{
	static const char label[] = "label";
	size_t size = sizeof(label) - 1;

	a->by_host = strcmp(text, "host") == 0;
	a->by_label = NULL;
	if (strcmp(text, label) == 0)
		a->by_label = "";
	else if (strncmp(text, label, size) == 0 && text[size] == ':' && text[size + 1])
		a->by_label = text + size + 1;
	else if (!a->by_host)
		ss_usage_fail(state, "--by: '%s' is not host, label, or label: and a key",
			      text);
}

static void check(const struct argp_state *state, const struct ss_report_arguments *a)
{
	if (!a->diff)
		return;
	if (a->files.count != 2)
		ss_usage_fail(state, "--diff compares two recordings or directories");
	if (!a->common.format->write_profile_diff)
		ss_usage_fail(state, "--diff: the formats are text, json and folded");
	else if (a->by_time && a->common.format != &ss_format_folded)
		ss_usage_fail(state, "--diff: with --weight=time the format is folded");
}

static error_t parse_value(int key, char *arg, struct argp_state *state)
{
	struct ss_report_arguments *a = state->input;

	switch (key) {
	case KEY_FROM:
		a->from = parse_time(state, "from", arg);
		return 0;
	case KEY_TO:
		a->to = parse_time(state, "to", arg);
		return 0;
	case KEY_MODULE:
		add_module(state, a, arg);
		return 0;
	case KEY_WAIT_FUNCTIONS:
		ss_options_check(state, ss_wait_functions_add(a->waits, arg));
		return 0;
	case KEY_WEIGHT:
		if (strcmp(arg, "time") != 0 && strcmp(arg, "hits") != 0)
			ss_usage_fail(state, "invalid --weight '%s': hits or time", arg);
		a->by_time = strcmp(arg, "time") == 0;
		return 0;
	case KEY_BY:
		parse_by(state, a, arg);
		return 0;
	case KEY_DIFF:
		a->diff = true;
		return 0;
	case KEY_NATIVE:
		a->native = true;
		return 0;
	case KEY_THRESHOLD:
		a->threshold_percent = (unsigned)ss_options_parse_number(
			state, "threshold", arg, 0, 100);
		return 0;
	case KEY_ROWS:
		a->rows =
			(unsigned)ss_options_parse_number(state, "rows", arg, 0, INT_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_report_arguments *arguments = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		ss_options_check(state, ss_wait_functions_load(&arguments->waits));
		state->child_inputs[0] = &arguments->common;
		state->child_inputs[1] = &arguments->common;
		state->child_inputs[2] = &arguments->selection;
		state->child_inputs[3] = &arguments->symbols;
		state->child_inputs[4] = &arguments->labels;
		return 0;
	case ARGP_KEY_ARG:
		add_file(state, state->input, arg);
		return 0;
	case ARGP_KEY_END:
		check(state, arguments);
		return 0;
	case ARGP_KEY_NO_ARGS:
		ss_usage_fail(state, "expected a recording");
		return 0;
	default:
		return parse_value(key, arg, state);
	}
}

static void write_help(FILE *out)
{
	ss_format_write_help(SS_FORMAT_PROFILE, out);
	(void)fputs("\nExit status: 0 complete, 1 something is missing (a part of a "
		    "recording, "
		    "or a module's file), 2 nothing could be shown, 64 wrong usage.\n",
		    out);
}

static char *help(int key, const char *text, void *input)
{
	(void)input;
	return ss_command_filter_help(key, text, write_help);
}

static const struct argp_child children[] = {
	{ &ss_format_argp, 0, NULL, 0 },    { &ss_common_argp, 0, NULL, 0 },
	{ &ss_selection_argp, 0, NULL, 0 }, { &ss_symbols_argp, 0, NULL, 0 },
	{ &ss_row_argp, 0, NULL, 0 },	    {},
};

const struct argp ss_report_argp = {
	.options = table,
	.parser = parse,
	.args_doc = "RECORDING|DIRECTORY|-...",
	.doc = "Show recordings, or convert them. Several recordings "
	       "are merged. A directory stands for the recordings in it; if it has none, "
	       "the crash reports in it are counted.\v",
	.children = children,
	.help_filter = help,
};
