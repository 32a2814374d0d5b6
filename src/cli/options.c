#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "cli/command.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "data/cache.h"
#include "diagnose/wait_table.h"
#include "process/process_list.h"
#include "process/spawn.h"
#include "report/names.h"
#include "stacksnap.h"

enum {
	DEFAULT_MAX_FRAMES = 1024,
	DEFAULT_INTERPRET_MS = 60000,
	GROUPS_MAX = 1 << 20,
	MS_PER_S = 1000,
	KIB = 1 << 10,
	MIB = 1 << 20,
	BOOT_ID_MAX = 63,
	SIZE_LIMIT =
		(1 << 20) + 1, /* of a file of functions: more than the library accepts */
};

enum key {
	KEY_FORMAT = 'f',
	KEY_OUTPUT = 'o',
	KEY_MAX_FRAMES = 'n',
	KEY_VERBOSE = 'v',
	KEY_MAX_STACK = 0x580,
	KEY_COLOR,
	KEY_RAW = 0x500,
	KEY_NO_INLINES,
	KEY_NO_SOURCE,
	KEY_NO_DEMANGLE,
	KEY_DEBUG_DIR,
	KEY_SYSROOT,
	KEY_DEBUGINFOD,
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
	KEY_BATCH = 0x680,
	KEY_LABEL,
	KEY_ENV,
	KEY_JSON,
	KEY_STRICT,
};

static const struct argp_option format_name_table[] = {
	{ "format", KEY_FORMAT, "NAME", 0, "Output format (default: text)", 1 },
	{ "json", KEY_JSON, NULL, 0, "Same as -f json", 1 },
	{},
};

static const struct argp_option format_table[] = {
	{ "color", KEY_COLOR, "WHEN", 0,
	  "text: use colours auto, always or never; auto: on a terminal (default: auto)",
	  1 },
	{},
};

static const struct argp_option common_table[] = {
	{ NULL, 0, NULL, 0, "Output:", 1 },
	{ "output", KEY_OUTPUT, "FILE", 0, "Write to a new FILE", 0 },
	{ NULL, 0, NULL, 0, "Other:", -1 },
	{ "verbose", KEY_VERBOSE, NULL, 0,
	  "Do not shorten output, and print more details", 0 },
	{},
};

static const struct argp_option limits_table[] = {
	{ NULL, 0, NULL, 0, "Capture:", 4 },
	{ "max-frames", KEY_MAX_FRAMES, "N", 0,
	  "Limit the frames of each stack; 0: no limit (default: 1024)", 0 },
	{ "max-stack", KEY_MAX_STACK, "KIB", 0,
	  "Limit how much of each stack is copied; the default depends on the command, "
	  "see its manual page",
	  0 },
	{},
};

static const struct ss_format *parse_format(enum ss_format_input input, const char *name)
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
	ss_usage_fail_format(name, known ? known : "others");
}

bool ss_options_want_color(const struct ss_common_options *options)
{
	if (options->color == SS_COLOR_AUTO)
		return ss_output_wants_color(options->output);
	return options->color == SS_COLOR_ALWAYS;
}

static const char *parse_output(const struct ss_common_options *options,
				const char *pattern)
{
	ss_usage_check(ss_output_check(pattern));
	if (options->no_pid && ss_output_is_per_target(pattern))
		ss_usage_fail("--output: '%%p' cannot be used: recordings may have "
			      "several pids");
	return pattern;
}

static void check_terminal(const struct ss_common_options *options)
{
	if (options->format->binary && ss_output_is_stdout(options->output) &&
	    isatty(STDOUT_FILENO))
		ss_usage_fail(
			"--format=%s is binary and cannot be written to a terminal: "
			"use -o FILE",
			options->format->name);
}

static error_t parse_format_name(int key, char *arg, struct argp_state *state)
{
	const char **name = state->input;

	switch (key) {
	case KEY_FORMAT:
		*name = arg;
		return 0;
	case KEY_JSON:
		*name = "json";
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ss_format_name_argp = { .options = format_name_table,
					  .parser = parse_format_name };

static error_t parse_format_option(int key, char *arg, struct argp_state *state)
{
	struct ss_common_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		options->format = &ss_format_text;
		state->child_inputs[0] = &options->format_name;
		return 0;
	case KEY_COLOR:
		options->color = ss_options_parse_color(arg);
		return 0;
	case ARGP_KEY_END: /* other options may have changed the input */
		if (options->format_name)
			options->format =
				parse_format(options->input, options->format_name);
		check_terminal(options);
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
		options->output = parse_output(options, arg);
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
		options->max_frames =
			(unsigned)ss_argument_number("max-frames", arg, 0, UINT_MAX);
		return 0;
	case KEY_MAX_STACK:
		options->max_stack =
			ss_argument_number("max-stack", arg, 1, 1 << 30) * KIB;
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

static const struct argp_child format_children[] = { { &ss_format_name_argp, 0, NULL, 0 },
						     {} };

const struct argp ss_format_argp = { .options = format_table,
				     .parser = parse_format_option,
				     .children = format_children };
const struct argp ss_common_argp = { .options = common_table,
				     .parser = parse_common_option,
				     .help_filter = describe_output };
const struct argp ss_limits_argp = { .options = limits_table, .parser = parse_limit };

/* Symbols ------------------------------------------------------------------------- */

static const struct argp_option symbol_table[] = {
	{ NULL, 0, NULL, 0, "Symbols:", 3 },
	{ "no-inlines", KEY_NO_INLINES, NULL, 0, "Omit frames of inlined functions", 0 },
	{ "no-source", KEY_NO_SOURCE, NULL, 0,
	  "Omit source files and lines of native code", 0 },
	{ "no-demangle", KEY_NO_DEMANGLE, NULL, 0, "Print mangled names", 0 },
	{ "debug-dir", KEY_DEBUG_DIR, "DIR", 0,
	  "Directory of separate debug files (default: /usr/lib/debug)", 0 },
	{ "sysroot", KEY_SYSROOT, "DIR", 0,
	  "Search for modules and debug files below DIR first", 0 },
	{ "debuginfod", KEY_DEBUGINFOD, NULL, 0,
	  "Download missing files from the servers in DEBUGINFOD_URLS", 0 },
	{},
};

static const struct argp_option raw_table[] = {
	{ "raw", KEY_RAW, NULL, 0, "Print module, offset and build-id instead of names",
	  3 },
	{},
};

static const char *parse_directory(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		ss_usage_fail("'%s' is not a directory", path);
	return path;
}

static error_t parse_symbol(int key, char *arg, struct argp_state *state)
{
	struct ss_symbol_options *options = state->input;

	switch (key) {
	case KEY_NO_INLINES:
		options->flags |= SS_NO_INLINES;
		return 0;
	case KEY_NO_SOURCE:
		options->flags |= SS_NO_SOURCE;
		return 0;
	case KEY_NO_DEMANGLE:
		options->flags |= SS_NO_DEMANGLE;
		return 0;
	case KEY_DEBUG_DIR:
		options->debug_dir = parse_directory(arg);
		return 0;
	case KEY_SYSROOT:
		options->sysroot = parse_directory(arg);
		return 0;
	case KEY_DEBUGINFOD:
		options->debuginfod = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_raw(int key, char *arg, struct argp_state *state)
{
	struct ss_symbol_options *options = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = options;
		return 0;
	case KEY_RAW:
		options->raw = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ss_names_argp = { .options = symbol_table, .parser = parse_symbol };

static const struct argp_child symbol_children[] = { { &ss_names_argp, 0, NULL, 0 }, {} };

const struct argp ss_symbols_argp = { .options = raw_table,
				      .parser = parse_raw,
				      .children = symbol_children };

/* Rows and labels ------------------------------------------------------------------ */

static const struct argp_option row_table[] = {
	{ "batch", KEY_BATCH, "NAME", 0,
	  "rows: name of this batch, the same on all hosts (default: the time)", 1 },
	{ "label", KEY_LABEL, "KEY=VALUE", 0,
	  "rows, recording: add a label; may be repeated", 1 },
	{},
};

static const struct argp_option label_table[] = {
	{ "label", KEY_LABEL, "KEY=VALUE", 0,
	  "Add a label to the recording; may be repeated", 1 },
	{},
};

static const struct argp_option env_table[] = {
	{ "env", KEY_ENV, "NAME", 0,
	  "Add an environment variable of the process as a label; may be repeated", 1 },
	{},
};

static bool is_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("_.-/", text[i]))
			return false;
	}
	return size > 0;
}

static error_t parse_row(int key, char *arg, struct argp_state *state)
{
	struct ss_row_arguments *arguments = state->input;
	const char **slot = NULL;

	switch (key) {
	case KEY_BATCH:
		arguments->batch = arg;
		return 0;
	case KEY_LABEL:
		if (!strchr(arg, '=') || !is_name(arg, strcspn(arg, "=")))
			ss_usage_fail("--label: '%s' is not KEY=VALUE", arg);
		slot = ss_vector_push(&arguments->labels);
		break;
	case KEY_ENV:
		if (!is_name(arg, strlen(arg)))
			ss_usage_fail("--env: '%s' is not the name of a variable", arg);
		slot = ss_vector_push(&arguments->variables);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	ss_argument_add(slot, arg);
	return 0;
}

const struct argp ss_row_argp = { .options = row_table, .parser = parse_row };
const struct argp ss_label_argp = { .options = label_table, .parser = parse_row };
const struct argp ss_row_env_argp = { .options = env_table, .parser = parse_row };

void ss_row_arguments_deinit(struct ss_row_arguments *arguments)
{
	ss_vector_free(&arguments->labels);
	ss_vector_free(&arguments->variables);
}

void ss_row_arguments_begin(struct ss_row_arguments *arguments, uint64_t at_ns)
{
	uint64_t ns = at_ns ? at_ns : ss_clock_ns(CLOCK_REALTIME);
	time_t seconds = (time_t)(ns / SS_NS_PER_SECOND);
	struct tm tm;

	if (arguments->batch || !gmtime_r(&seconds, &tm))
		return;
	(void)strftime(arguments->time, sizeof(arguments->time), "%Y-%m-%dT%H:%M:%SZ",
		       &tm); /* it fits */
	arguments->batch = arguments->time;
}

static void read_boot_id(struct ss_row_source *source)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (ss_io_read_path(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_ID_MAX,
			    &text) == 0)
		(void)snprintf(source->boot_id, sizeof(source->boot_id), "%.*s",
			       (int)strcspn(text.bytes, "\n"), text.bytes);
}

static void update_rows(struct ss_row_source *source)
{
	source->options = (struct ss_row_options){
		.batch = source->batch,
		.boot_id = source->boot_id,
		.labels = (const char *const *)source->labels.items,
		.label_count = source->labels.count,
	};
}

static void add_label(struct ss_row_source *source, char *label)
{
	char **slot = label ? ss_vector_push(&source->labels) : NULL;

	if (slot)
		*slot = label;
	else
		free(label);
}

void ss_row_source_init(struct ss_row_source *source,
			const struct ss_row_arguments *arguments)
{
	*source = (struct ss_row_source){};
	source->batch = strdup(arguments->batch ? arguments->batch : "");
	read_boot_id(source);
	for (size_t i = 0; i < arguments->labels.count; i++)
		add_label(source, strdup(arguments->labels.items[i]));
	update_rows(source);
}

void ss_row_source_add(struct ss_row_source *source,
		       const struct ss_row_arguments *arguments,
		       const struct ss_target *target)
{
	for (size_t i = 0; i < arguments->variables.count; i++) {
		const char *name = arguments->variables.items[i];
		_cleanup_free_ char *value = ss_target_read_variable(target, name);
		char *label = NULL;
		if (!value)
			ss_failure_warn("--env: process %d has no variable %s, or it "
					"cannot be read",
					ss_target_pid(target), name);
		else if (asprintf(&label, "%s=%s", name, value) >= 0)
			add_label(source, label);
	}
	update_rows(source);
}

void ss_row_source_deinit(struct ss_row_source *source)
{
	for (size_t i = 0; i < source->labels.count; i++)
		free(source->labels.items[i]);
	ss_vector_free(&source->labels);
	free(source->batch);
}

/* Functions that wait --------------------------------------------------------------- */

static struct ss_error *add_file(struct ss_wait_table *table, const char *path, int fd)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int code = ss_io_read_all(fd, SIZE_LIMIT, &text);

	if (code)
		return ss_error_new(SS_ERROR_SYSTEM, "cannot read %s: %s", path,
				    strerror(-code));
	return ss_wait_table_add(table, path, text.bytes ? text.bytes : "", text.size);
}

struct ss_error *ss_wait_functions_add(struct ss_wait_table *table, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return ss_error_new(SS_ERROR_SYSTEM, "cannot open %s: %s", path,
				    strerror(errno));
	return add_file(table, path, fd);
}

/* Files of other users are not read: with HOME unchanged, sudo would read them as root. */
static void add_config(struct ss_wait_table *table, const char *path)
{
	_cleanup_close_ int found = open(path, O_PATH | O_CLOEXEC);
	_cleanup_close_ int fd = found < 0 ? -1 : ss_io_reopen(found);
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 ||
	    (status.st_uid != 0 && status.st_uid != geteuid()))
		return;
	_cleanup_error_ struct ss_error *error = add_file(table, path, fd);
	if (error)
		ss_failure_warn("%s", ss_error_message(error));
}

static void add_user_config(struct ss_wait_table *table)
{
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	_cleanup_buffer_ struct ss_buffer path = {};

	if (config && config[0] == '/')
		ss_buffer_printf(&path, "%s/stacksnap/wait-functions", config);
	else if (home && home[0] == '/')
		ss_buffer_printf(&path, "%s/.config/stacksnap/wait-functions", home);
	if (path.size && !path.failed)
		add_config(table, path.bytes);
}

struct ss_error *ss_wait_functions_load(struct ss_wait_table **ret)
{
	struct ss_wait_table *table = NULL;
	struct ss_error *error = ss_wait_table_new(&table);

	if (error)
		return error;
	add_config(table, "/etc/stacksnap/wait-functions");
	add_user_config(table);
	*ret = table;
	return NULL;
}

/* Captures --------------------------------------------------------------------------- */

#define MAX_TOTAL_DEFAULT ((uint64_t)256 << 20)

static const struct argp_option interpret_table[] = {
	{ "all", KEY_ALL, NULL, 0,
	  "text: also show idle threads (default: only count them, unless all are idle)",
	  1 },
	{ "no-group", KEY_NO_GROUP, NULL, 0, "Do not merge threads with equal stacks",
	  1 },
	{ "native", KEY_NATIVE, NULL, 0,
	  "Also show all native frames of interpreters and virtual machines", 1 },
	{ "goroutines", KEY_GOROUTINES, "N|all", 0,
	  "Go programs, text: show the N largest groups of goroutines with equal stacks; "
	  "0: do not read them (default: 20)",
	  1 },
	{ "tasks", KEY_TASKS, "N|all", 0,
	  "Python, text: show the N largest groups of asyncio's tasks with equal stacks; "
	  "0: do not read them (default: 20)",
	  1 },
	SS_WAIT_FUNCTIONS_OPTION(KEY_WAIT_FUNCTIONS, 1),
	{ "strict", KEY_STRICT, NULL, 0,
	  "Also exit with status 1 if the stack of an idle thread has a guessed frame",
	  1 },
	{ "max-total", KEY_MAX_TOTAL, "MIB", 0,
	  "Limit how much is copied of all stacks together (default: 256)", 4 },
	{ "interpret-timeout", KEY_INTERPRET_TIMEOUT, "S", 0,
	  "Limit the time for unwinding, symbolization and output (default: 60; more "
	  "for a large core file)",
	  4 },
	{},
};

static const struct argp_option waits_table[] = {
	{ "no-waits", KEY_NO_WAITS, NULL, 0, "Skip wait analysis", 1 },
	{},
};

static const struct argp_option minidump_table[] = {
	{ "environment", KEY_ENVIRONMENT, NULL, 0,
	  "minidump: include environment and command line, which may contain secrets",
	  1 },
	{},
};

static const struct argp_option table[] = {
	{ "no-cache", KEY_NO_CACHE, NULL, 0, "Do not use or update the cache of names",
	  3 },
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

void ss_options_check_tasks(const struct ss_options *options, const char *where)
{
	if (options->tasks_given && options->tasks)
		ss_usage_fail("--tasks cannot be used %s: tasks are not read", where);
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

uint64_t ss_options_max_total(const struct ss_options *options)
{
	return options->max_total ? options->max_total : MAX_TOTAL_DEFAULT;
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

static enum ss_mode parse_mode(const char *name)
{
	enum ss_mode mode = SS_MODE_STOP;

	if (!ss_mode_find(name, &mode))
		ss_usage_fail(
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

static void print_completion(const char *shell)
{
	if (!ss_completion_print(shell, stdout))
		ss_usage_fail("--completion: unknown shell '%s'; known shells: %s", shell,
			      ss_completion_shells());
	exit(0);
}

static unsigned parse_unsigned(const char *name, const char *text, unsigned max)
{
	return (unsigned)ss_argument_number(name, text, 1, max);
}

static error_t parse_interpret(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		ss_usage_check(ss_wait_functions_load(&o->waits));
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->common;
		state->child_inputs[2] = &o->common;
		state->child_inputs[3] = &o->symbols;
		return 0;
	case KEY_ALL:
		o->all = true;
		return 0;
	case KEY_STRICT:
		o->strict = true;
		return 0;
	case KEY_NO_GROUP:
		o->no_group = true;
		return 0;
	case KEY_WAIT_FUNCTIONS:
		ss_usage_check(ss_wait_functions_add(o->waits, arg));
		return 0;
	case KEY_NATIVE:
		o->native = true;
		return 0;
	case KEY_GOROUTINES:
		o->goroutines_given = true;
		o->goroutines =
			strcmp(arg, "all") == 0 ?
				SIZE_MAX :
				ss_argument_number("goroutines", arg, 0, GROUPS_MAX);
		return 0;
	case KEY_TASKS:
		o->tasks_given = true;
		o->tasks = strcmp(arg, "all") == 0 ?
				   SIZE_MAX :
				   ss_argument_number("tasks", arg, 0, GROUPS_MAX);
		return 0;
	case KEY_INTERPRET_TIMEOUT:
		o->interpret_ms =
			parse_unsigned("interpret-timeout", arg, 24 * 3600) * MS_PER_S;
		return 0;
	case KEY_MAX_TOTAL:
		o->max_total = (size_t)parse_unsigned("max-total", arg, 1 << 20) * MIB;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_waits(int key, char *arg, struct argp_state *state)
{
	struct ss_options *o = state->input;

	(void)arg;
	if (key != KEY_NO_WAITS)
		return ARGP_ERR_UNKNOWN;
	o->no_waits = true;
	return 0;
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
		o->mode = parse_mode(arg);
		return 0;
	case KEY_TIMEOUT:
		o->timeout_ms = parse_unsigned("timeout", arg, 3600 * MS_PER_S);
		return 0;
	case KEY_COMPLETION:
		print_completion(arg);
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
		return strdup("Also show the native frames of interpreters; cannot be "
			      "used with recordings");
	return text ? strdup(text) : NULL;
}

static const struct argp_child interpret_children[] = {
	{ &ss_format_argp, 0, NULL, 0 },
	{ &ss_common_argp, 0, NULL, 0 },
	{ &ss_limits_argp, 0, NULL, 0 },
	{ &ss_symbols_argp, 0, NULL, 0 },
	{},
};

const struct argp ss_interpret_argp = {
	.options = interpret_table,
	.parser = parse_interpret,
	.children = interpret_children,
	.help_filter = describe_runtimes,
};

const struct argp ss_waits_argp = { .options = waits_table, .parser = parse_waits };

const struct argp ss_minidump_argp = { .options = minidump_table,
				       .parser = parse_minidump };

static const struct argp_child children[] = { { &ss_interpret_argp, 0, NULL, 0 }, {} };

const struct argp ss_options_argp = {
	.options = table,
	.parser = parse,
	.children = children,
};
