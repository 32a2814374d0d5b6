#include "cli/report_options.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/number.h"
#include "cli/options.h"
#include "cli/output.h"

enum { DEFAULT_ROWS = 20, DEFAULT_THRESHOLD = 1 };

enum key {
	KEY_FORMAT = 'f',
	KEY_OUTPUT = 'o',
	KEY_THREAD = 't',
	KEY_VERBOSE = 'v',
	KEY_FROM = 0x400,
	KEY_TO,
	KEY_STATE,
	KEY_MODULE,
	KEY_RAW,
	KEY_NO_INLINES,
	KEY_NO_SOURCE,
	KEY_NO_DEMANGLE,
	KEY_DEBUG_DIR,
	KEY_SYSROOT,
	KEY_DEBUGINFOD,
	KEY_THRESHOLD,
	KEY_ROWS,
};

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "What is shown:", 1 },
	{ "format", KEY_FORMAT, "NAME", 0, "Output format; text unless told", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0,
	  "Write to a new FILE instead of stdout; %t is the time", 0 },
	{ "from", KEY_FROM, "TIME", 0,
	  "Samples from then on: seconds since the begin, or [DATE ]HH:MM:SS", 0 },
	{ "to", KEY_TO, "TIME", 0, "Samples before then", 0 },
	{ "thread", KEY_THREAD, "TID|REGEX", 0,
	  "Only these threads: an id, or a pattern over the name; may repeat", 0 },
	{ "state", KEY_STATE, "LETTERS", 0, "Only samples in these states (R, S, D...)",
	  0 },
	{ "module", KEY_MODULE, "REGEX", 0,
	  "Only stacks that pass through a module whose path matches; may repeat", 0 },
	{ "threshold", KEY_THRESHOLD, "PERCENT", 0,
	  "text: leave out calls with a smaller share; 1 unless told", 0 },
	{ "rows", KEY_ROWS, "N", 0, "text: lines of each table at most; 20 unless told",
	  0 },
	{ "raw", KEY_RAW, NULL, 0, "No names: module, offset and build-id", 0 },
	{ "no-inlines", KEY_NO_INLINES, NULL, 0, "No frames for inlined functions", 0 },
	{ "no-source", KEY_NO_SOURCE, NULL, 0, "No files and lines", 0 },
	{ "no-demangle", KEY_NO_DEMANGLE, NULL, 0, "Names as the linker sees them", 0 },
	{ NULL, 0, NULL, 0, "Where names come from:", 2 },
	{ "debug-dir", KEY_DEBUG_DIR, "DIR", 0,
	  "Separate debug files; /usr/lib/debug unless told", 0 },
	{ "sysroot", KEY_SYSROOT, "DIR", 0, "Look for modules below DIR first", 0 },
	{ "debuginfod", KEY_DEBUGINFOD, NULL, 0,
	  "Ask the servers in DEBUGINFOD_URLS for what is not found here", 0 },
	{ NULL, 0, NULL, 0, "Other:", -1 },
	{ "verbose", KEY_VERBOSE, NULL, 0,
	  "Shorten nothing; say what was done and how long it took", 0 },
	{},
};

void ss_report_arguments_init(struct ss_report_arguments *arguments)
{
	*arguments = (struct ss_report_arguments){ .reporter = ss_reporter_at(0),
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
}

static const struct ss_reporter *parse_format(const struct argp_state *state,
					      const char *name)
{
	const struct ss_reporter *reporter = ss_reporter_find(name);
	char known[200] = "";

	if (reporter)
		return reporter;
	for (size_t i = 0; (reporter = ss_reporter_at(i)); i++) {
		size_t used = strlen(known);
		(void)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			       reporter->name); /* cut is no harm */
	}
	argp_error(state, "--format: '%s' is not known; there are %s", name, known);
	return ss_reporter_at(0);
}

static struct ss_moment parse_moment(const struct argp_state *state, const char *name,
				     const char *text)
{
	struct ss_moment moment = {};

	if (!ss_moment_parse(text, &moment))
		argp_error(state,
			   "--%s: '%s' is no time: seconds since the begin, HH:MM:SS, or "
			   "YYYY-MM-DD HH:MM:SS",
			   name, text);
	return moment;
}

static unsigned parse_number(const struct argp_state *state, const char *name,
			     const char *text, unsigned max)
{
	uint64_t value = 0;

	if (ss_number_parse(text, 0, max, &value) != SS_NUMBER_OK)
		argp_error(state, "--%s: '%s' is not a number from 0 to %u", name, text,
			   max);
	return (unsigned)value;
}

static const char *parse_directory(const struct argp_state *state, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		argp_error(state, "'%s' is no directory", path);
	return path;
}

static void add_module(const struct argp_state *state,
		       struct ss_report_arguments *arguments, const char *text)
{
	regex_t *pattern = ss_vector_push(&arguments->modules);
	char why[200] = "";

	if (!pattern) {
		argp_failure(state, EXIT_FAILURE, 0, "out of memory");
		return;
	}
	int code = regcomp(pattern, text, REG_EXTENDED | REG_NOSUB);
	if (code == 0)
		return;
	(void)regerror(code, pattern, why, sizeof(why)); /* cut is good enough */
	arguments->modules.count--;
	argp_error(state, "--module: '%s' is no regular expression: %s", text, why);
}

static void add_file(const struct argp_state *state,
		     struct ss_report_arguments *arguments, const char *path)
{
	const char **slot = ss_vector_push(&arguments->files);

	if (!slot)
		argp_failure(state, EXIT_FAILURE, 0, "out of memory");
	else
		*slot = path;
}

static void check(const struct argp_state *state,
		  const struct ss_report_arguments *arguments)
{
	bool to_stdout = !arguments->output || strcmp(arguments->output, "-") == 0;

	if (arguments->reporter->binary && to_stdout && isatty(STDOUT_FILENO))
		argp_error(state, "%s is not for a terminal: -o FILE",
			   arguments->reporter->name);
}

/* Options that set a flag. */
static bool parse_flag(int key, struct ss_report_arguments *arguments)
{
	switch (key) {
	case KEY_RAW:
		return arguments->raw = true;
	case KEY_VERBOSE:
		return arguments->verbose = true;
	case KEY_DEBUGINFOD:
		return arguments->debuginfod = true;
	case KEY_NO_INLINES:
		return arguments->symbolize_flags |= SS_NO_INLINES;
	case KEY_NO_SOURCE:
		return arguments->symbolize_flags |= SS_NO_SOURCE;
	case KEY_NO_DEMANGLE:
		return arguments->symbolize_flags |= SS_NO_DEMANGLE;
	default:
		return false;
	}
}

static error_t parse_value(int key, char *arg, struct argp_state *state)
{
	struct ss_report_arguments *a = state->input;

	switch (key) {
	case KEY_FORMAT:
		a->reporter = parse_format(state, arg);
		return 0;
	case KEY_OUTPUT:
		ss_options_check(state, ss_output_check(arg));
		a->output = arg;
		return 0;
	case KEY_FROM:
		a->from = parse_moment(state, "from", arg);
		return 0;
	case KEY_TO:
		a->to = parse_moment(state, "to", arg);
		return 0;
	case KEY_THREAD:
		ss_options_check(state, ss_selection_add(&a->selection, arg));
		return 0;
	case KEY_STATE:
		ss_options_check(state, ss_selection_set_states(&a->selection, arg));
		return 0;
	case KEY_MODULE:
		add_module(state, a, arg);
		return 0;
	case KEY_DEBUG_DIR:
		a->debug_dir = parse_directory(state, arg);
		return 0;
	case KEY_SYSROOT:
		a->sysroot = parse_directory(state, arg);
		return 0;
	case KEY_THRESHOLD:
		a->threshold_percent = parse_number(state, "threshold", arg, 100);
		return 0;
	case KEY_ROWS:
		a->rows = parse_number(state, "rows", arg, INT_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_ARG:
		add_file(state, state->input, arg);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "no recording is given");
		return 0;
	case ARGP_KEY_END:
		check(state, state->input);
		return 0;
	default:
		if (parse_flag(key, state->input))
			return 0;
		return parse_value(key, arg, state);
	}
}

static char *help(int key, const char *text, void *input)
{
	const struct ss_reporter *reporter = NULL;
	char *list = NULL;
	size_t size = 0;

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	FILE *out = open_memstream(&list, &size);
	if (!out)
		return (char *)text;
	(void)fputs("Formats:\n", out);
	for (size_t i = 0; (reporter = ss_reporter_at(i)); i++)
		(void)fprintf(out, "  %-10s %s\n", reporter->name, reporter->summary);
	(void)fputs(
		"\nExit status: 0 everything is shown, 1 something is missing (a part "
		"of a recording, or a module's file), 2 nothing could be shown, 64 "
		"wrong usage.\n",
		out);
	return fclose(out) == 0 ? list : (char *)text;
}

const struct argp ss_report_argp = {
	.options = table,
	.parser = parse,
	.args_doc = "RECORDING...",
	.doc = "Show recordings of stacksnap record: name their frames, bring them "
	       "together, show or convert them.\v",
	.help_filter = help,
};
