#include "cli/options.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/completion.h"
#include "cli/number.h"
#include "cli/output.h"
#include "view/escape.h"
#include "view/mode.h"

enum { DEFAULT_MAX_FRAMES = 1024, DEFAULT_INTERPRET_MS = 60000, MS_PER_S = 1000 };
enum { KIB = 1 << 10, MIB = 1 << 20 };

enum key {
	KEY_FORMAT = 'f',
	KEY_OUTPUT = 'o',
	KEY_MAX_FRAMES = 'n',
	KEY_THREAD = 't',
	KEY_VERBOSE = 'v',
	KEY_VERSION = 'V',
	KEY_STATE = 0x100,
	KEY_RAW,
	KEY_NO_INLINES,
	KEY_NO_SOURCE,
	KEY_NO_DEMANGLE,
	KEY_NO_GROUP,
	KEY_NO_WAITS,
	KEY_DEBUG_DIR,
	KEY_SYSROOT,
	KEY_MODE,
	KEY_TIMEOUT,
	KEY_INTERPRET_TIMEOUT,
	KEY_MAX_STACK,
	KEY_MAX_TOTAL,
	KEY_COMPLETION,
};

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "What is shown:", 1 },
	{ "format", KEY_FORMAT, "NAME", 0, "Output format; text unless told", 0 },
	{ "output", KEY_OUTPUT, "FILE", 0,
	  "Write to a new FILE instead of stdout; %p is the pid, %t the time", 0 },
	{ "max-frames", KEY_MAX_FRAMES, "N", 0,
	  "Frames per thread, 0 for no limit; 1024 unless told", 0 },
	{ "thread", KEY_THREAD, "TID|REGEX", 0,
	  "Only these threads: an id, or a pattern over the name; may repeat", 0 },
	{ "state", KEY_STATE, "LETTERS", 0, "Only threads in these states (R, S, D...)",
	  0 },
	{ "raw", KEY_RAW, NULL, 0, "No names: module, offset and build-id", 0 },
	{ "no-inlines", KEY_NO_INLINES, NULL, 0, "No frames for inlined functions", 0 },
	{ "no-source", KEY_NO_SOURCE, NULL, 0, "No files and lines", 0 },
	{ "no-demangle", KEY_NO_DEMANGLE, NULL, 0, "Names as the linker sees them", 0 },
	{ "no-group", KEY_NO_GROUP, NULL, 0,
	  "Each thread apart, also where stacks are equal", 0 },
	{ "no-waits", KEY_NO_WAITS, NULL, 0, "Not what threads wait for", 0 },
	{ NULL, 0, NULL, 0, "Where names come from:", 2 },
	{ "debug-dir", KEY_DEBUG_DIR, "DIR", 0,
	  "Separate debug files; /usr/lib/debug unless told", 0 },
	{ "sysroot", KEY_SYSROOT, "DIR", 0, "Look for modules below DIR first", 0 },
	{ "interpret-timeout", KEY_INTERPRET_TIMEOUT, "S", 0,
	  "The longest that working out frames and names may take, in seconds; 60 unless "
	  "told",
	  0 },
	{ NULL, 0, NULL, 0, "How the process is held:", 3 },
	{ "mode", KEY_MODE, "MODE", 0, "stop, live, no-stop or auto; stop unless told",
	  0 },
	{ "timeout", KEY_TIMEOUT, "MS", 0,
	  "The longest the whole freeze may last; 1000 unless told", 0 },
	{ "max-stack", KEY_MAX_STACK, "KIB", 0,
	  "Copied of each stack at most; 256 unless told", 0 },
	{ "max-total", KEY_MAX_TOTAL, "MIB", 0,
	  "Copied of all stacks at most; 256 unless told", 0 },
	{ NULL, 0, NULL, 0, "Other:", -1 },
	{ "verbose", KEY_VERBOSE, NULL, 0,
	  "Shorten nothing; say what was done and how long each phase took", 0 },
	{ "completion", KEY_COMPLETION, "SHELL", 0,
	  "Print a completion script for bash, zsh or fish", 0 },
	{ "version", KEY_VERSION, NULL, 0, "Print the version", 0 },
	{},
};

void ss_options_init(struct ss_options *options)
{
	*options = (struct ss_options){ .size = sizeof(*options),
					.renderer = ss_renderer_at(0),
					.mode = SS_MODE_STOP,
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

static uint64_t parse_number(const struct argp_state *state, const char *name,
			     const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = min;

	if (ss_number_parse(text, min, max, &value) != SS_NUMBER_OK)
		argp_error(state, "--%s: '%s' is not a number from %ju to %ju", name,
			   text, (uintmax_t)min, (uintmax_t)max);
	return value;
}

static const struct ss_renderer *parse_format(const struct argp_state *state,
					      const char *name)
{
	const struct ss_renderer *renderer = ss_renderer_find(name);
	char known[200] = "";

	if (renderer)
		return renderer;
	for (size_t i = 0; (renderer = ss_renderer_at(i)); i++) {
		size_t used = strlen(known);
		(void)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
			       renderer->name); /* cut is no harm */
	}
	argp_error(state, "--format: '%s' is not known; there are %s", name, known);
	return ss_renderer_at(0);
}

static enum ss_mode parse_mode(const struct argp_state *state, const char *name)
{
	enum ss_mode mode = SS_MODE_STOP;

	if (!ss_mode_find(name, &mode))
		argp_error(state,
			   "--mode: '%s' is not known; there are stop, live, "
			   "no-stop, auto",
			   name);
	return mode;
}

static const char *parse_directory(const struct argp_state *state, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		argp_error(state, "'%s' is no directory", path);
	return path;
}

static const char *parse_output(const struct argp_state *state, const char *pattern)
{
	ss_options_check(state, ss_output_check(pattern));
	return pattern;
}

static void print_version(void)
{
	(void)printf("stacksnap %s\n", ss_version()); /* checked at exit */
	exit(0);
}

static void print_completion(const struct argp_state *state, const char *shell)
{
	if (!ss_completion_print(shell, stdout))
		argp_error(state, "--completion: '%s' is not known; there are %s", shell,
			   ss_completion_shells());
	exit(0);
}

/* Options that set a flag. */
static bool parse_flag(int key, struct ss_options *options)
{
	switch (key) {
	case KEY_RAW:
		return options->raw = true;
	case KEY_NO_GROUP:
		return options->no_group = true;
	case KEY_NO_WAITS:
		return options->no_waits = true;
	case KEY_VERBOSE:
		return options->verbose = true;
	case KEY_NO_INLINES:
		return options->symbolize_flags |= SS_NO_INLINES;
	case KEY_NO_SOURCE:
		return options->symbolize_flags |= SS_NO_SOURCE;
	case KEY_NO_DEMANGLE:
		return options->symbolize_flags |= SS_NO_DEMANGLE;
	default:
		return false;
	}
}

static error_t parse_value(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	switch (key) {
	case KEY_FORMAT:
		o->renderer = parse_format(state, arg);
		return 0;
	case KEY_OUTPUT:
		o->output = parse_output(state, arg);
		return 0;
	case KEY_MAX_FRAMES:
		o->max_frames =
			(unsigned)parse_number(state, "max-frames", arg, 0, UINT_MAX);
		return 0;
	case KEY_THREAD:
		ss_options_check(state, ss_selection_add(&o->selection, arg));
		return 0;
	case KEY_STATE:
		ss_options_check(state, ss_selection_set_states(&o->selection, arg));
		return 0;
	case KEY_DEBUG_DIR:
		o->debug_dir = parse_directory(state, arg);
		return 0;
	case KEY_SYSROOT:
		o->sysroot = parse_directory(state, arg);
		return 0;
	case KEY_MODE:
		o->mode = parse_mode(state, arg);
		return 0;
	case KEY_TIMEOUT:
		o->timeout_ms =
			(unsigned)parse_number(state, "timeout", arg, 1, 3600 * 1000);
		return 0;
	case KEY_INTERPRET_TIMEOUT:
		o->interpret_ms = (unsigned)parse_number(state, "interpret-timeout", arg,
							 1, 24 * 3600) *
				  MS_PER_S;
		return 0;
	case KEY_MAX_STACK:
		o->max_stack = parse_number(state, "max-stack", arg, 1, 1 << 30) * KIB;
		return 0;
	case KEY_MAX_TOTAL:
		o->max_total = parse_number(state, "max-total", arg, 1, 1 << 20) * MIB;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key == KEY_VERSION)
		print_version();
	if (key == KEY_COMPLETION)
		print_completion(state, arg);
	if (parse_flag(key, state->input))
		return 0;
	return parse_value(key, arg, state);
}

const struct argp ss_options_argp = { .options = table, .parser = parse };
