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
#include "base/text_stream.h"
#include "cli/command.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "data/cache.h"
#include "diagnose/wait_table.h"
#include "elf/elffile.h"
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

static const struct ss_format *parse_format(enum ss_format_input input, const char *name)
{
	const struct ss_format *format = ss_format_find(input, name);
	struct ss_text_stream names;

	if (format)
		return format;
	if (!ss_text_stream_open(&names))
		ss_usage_fail("out of memory");
	ss_format_write_names(input, ", ", names.out);
	_cleanup_free_ char *known = ss_text_stream_close(&names);
	if (input == SS_FORMAT_SNAPSHOT && ss_format_find(SS_FORMAT_SERIES, name))
		ss_usage_fail(
			"--format: '%s' shows several snapshots: add --interval, or "
			"give a recording to stacksnap report",
			name);
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

static void take_json(void *input, const char *arg)
{
	const char **name = input;

	(void)arg;
	*name = "json";
}

static const struct ss_option format_name_table[] = {
	{ "format", 'f', "NAME", "Output format (default: text)", 1,
	  .type = SS_OPTION_TEXT },
	{ "json", 0, NULL, "Same as -f json", 1, .take = take_json },
	{},
};

const struct ss_option_group ss_format_name_group = { .options = format_name_table };

static void take_color(void *color, const char *arg)
{
	*(enum ss_color *)color = ss_options_parse_color(arg);
}

static const struct ss_option format_table[] = {
	{ "color", 0, "WHEN",
	  "text: use colours auto, always or never; auto: on a terminal (default: auto)",
	  1, .take = take_color, .offset = offsetof(struct ss_common_options, color) },
	{},
};

static void begin_format(void *input)
{
	struct ss_common_options *options = input;

	options->format = &ss_format_text;
}

/* Other options may have changed the input. */
static void end_format(void *input)
{
	struct ss_common_options *options = input;

	if (options->format_name)
		options->format = parse_format(options->input, options->format_name);
	check_terminal(options);
}

static void take_output(void *input, const char *arg)
{
	struct ss_common_options *options = input;

	options->output = parse_output(options, arg);
}

static const struct ss_option common_table[] = {
	{ .doc = "Output:", .group = 1 },
	{ "output", 'o', "FILE", "Write to a new FILE", 0, .take = take_output },
	{ .doc = "Other:", .group = -1 },
	{ "verbose", 'v', NULL, "Do not shorten output, and print more details", 0,
	  SS_SETS_FLAG(struct ss_common_options, verbose) },
	{},
};

static void begin_common(void *input)
{
	struct ss_common_options *options = input;

	options->output = options->default_output;
}

static const struct ss_option limits_table[] = {
	{ .doc = "Capture:", .group = 4 },
	{ "max-frames", 'n', "N",
	  "Limit the frames of each stack; 0: no limit (default: 1024)", 0,
	  SS_SETS_NUMBER(struct ss_common_options, max_frames, 0, UINT_MAX) },
	{ "max-stack", 0, "KIB",
	  "Limit how much of each stack is copied; the default depends on the command, "
	  "see its manual page",
	  0,
	  SS_SETS_NUMBER(struct ss_common_options, max_stack, 1, 1 << 30, .unit = KIB) },
	{},
};

static void begin_limits(void *input)
{
	struct ss_common_options *options = input;

	options->max_frames = DEFAULT_MAX_FRAMES;
}

/* Adds what differs between commands. */
static char *describe_output(const struct ss_option *option, const void *input)
{
	const struct ss_common_options *options = input;
	char *help = NULL;

	if (option->letter != 'o')
		return strdup(option->doc);
	if (asprintf(&help, "%s; %s (default: %s)", option->doc,
		     options->no_pid ? "%t is the time" : "%p is the pid, %t the time",
		     options->default_output ? options->default_output :
					       "standard output") < 0)
		return NULL;
	return help;
}

static const struct ss_option_child format_children[] = {
	{ &ss_format_name_group, offsetof(struct ss_common_options, format_name) },
	{},
};

const struct ss_option_group ss_format_group = {
	.options = format_table,
	.children = format_children,
	.begin = begin_format,
	.end = end_format,
};
const struct ss_option_group ss_common_group = {
	.options = common_table,
	.begin = begin_common,
	.describe = describe_output,
};
const struct ss_option_group ss_limits_group = {
	.options = limits_table,
	.begin = begin_limits,
};

/* Symbols ------------------------------------------------------------------------- */

static void take_directory(void *directory, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		ss_usage_fail("'%s' is not a directory", path);
	*(const char **)directory = path;
}

/* Sets a flag of enum ss_symbolize_flags. */
static void leave_out_inlines(void *flags, const char *arg)
{
	(void)arg;
	*(unsigned *)flags |= SS_NO_INLINES;
}

static void leave_out_source(void *flags, const char *arg)
{
	(void)arg;
	*(unsigned *)flags |= SS_NO_SOURCE;
}

static void leave_out_demangling(void *flags, const char *arg)
{
	(void)arg;
	*(unsigned *)flags |= SS_NO_DEMANGLE;
}

static const struct ss_option symbol_table[] = {
	{ .doc = "Symbols:", .group = 3 },
	{ "no-inlines", 0, NULL, "Omit frames of inlined functions", 0,
	  .take = leave_out_inlines,
	  .offset = offsetof(struct ss_symbol_options, flags) },
	{ "no-source", 0, NULL, "Omit source files and lines of native code", 0,
	  .take = leave_out_source, .offset = offsetof(struct ss_symbol_options, flags) },
	{ "no-demangle", 0, NULL, "Print mangled names", 0, .take = leave_out_demangling,
	  .offset = offsetof(struct ss_symbol_options, flags) },
	{ "debug-dir", 0, "DIR",
	  "Directory of separate debug files (default: /usr/lib/debug)", 0,
	  .take = take_directory,
	  .offset = offsetof(struct ss_symbol_options, debug_dir) },
	{ "sysroot", 0, "DIR", "Search for modules and debug files below DIR first", 0,
	  .take = take_directory, .offset = offsetof(struct ss_symbol_options, sysroot) },
	{ "debuginfod", 0, NULL,
	  "Download missing files from the servers in DEBUGINFOD_URLS", 0,
	  SS_SETS_FLAG(struct ss_symbol_options, debuginfod) },
	{},
};

static const struct ss_option raw_table[] = {
	{ "raw", 0, NULL, "Print module, offset and build-id instead of names", 3,
	  SS_SETS_FLAG(struct ss_symbol_options, raw) },
	{},
};

const struct ss_option_group ss_names_group = { .options = symbol_table };

static const struct ss_option_child symbol_children[] = { { &ss_names_group, 0 }, {} };

const struct ss_option_group ss_symbols_group = { .options = raw_table,
						  .children = symbol_children };

/* Rows and labels ------------------------------------------------------------------ */

static bool is_name(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("_.-/", text[i]))
			return false;
	}
	return size > 0;
}

static void take_label(void *input, const char *arg)
{
	struct ss_row_arguments *arguments = input;

	if (!strchr(arg, '=') || !is_name(arg, strcspn(arg, "=")))
		ss_usage_fail("--label: '%s' is not KEY=VALUE", arg);
	ss_argument_add(ss_vector_push(&arguments->labels), arg);
}

static void take_variable(void *input, const char *arg)
{
	struct ss_row_arguments *arguments = input;

	if (!is_name(arg, strlen(arg)))
		ss_usage_fail("--env: '%s' is not the name of a variable", arg);
	ss_argument_add(ss_vector_push(&arguments->variables), arg);
}

static const struct ss_option row_table[] = {
	{ "batch", 0, "NAME",
	  "rows: name of this batch, the same on all hosts (default: the time)", 1,
	  SS_SETS_TEXT(struct ss_row_arguments, batch) },
	{ "label", 0, "KEY=VALUE", "rows, recording: add a label; may be repeated", 1,
	  .take = take_label },
	{},
};

static const struct ss_option label_table[] = {
	{ "label", 0, "KEY=VALUE", "Add a label to the recording; may be repeated", 1,
	  .take = take_label },
	{},
};

static const struct ss_option env_table[] = {
	{ "env", 0, "NAME",
	  "Add an environment variable of the process as a label; may be repeated", 1,
	  .take = take_variable },
	{},
};

const struct ss_option_group ss_row_group = { .options = row_table };
const struct ss_option_group ss_label_group = { .options = label_table };
const struct ss_option_group ss_row_env_group = { .options = env_table };

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

void ss_wait_functions_take(void *waits, const char *path)
{
	struct ss_wait_table **table = waits;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		ss_usage_fail("cannot open %s: %s", path, strerror(errno));
	ss_usage_check(add_file(*table, path, fd));
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

void ss_options_init(struct ss_options *options)
{
	*options = (struct ss_options){ .mode = SS_MODE_AUTO,
					.goroutines = SS_FORMAT_TASK_GROUPS,
					.tasks = SS_FORMAT_TASK_GROUPS,
					.interpret_ms = DEFAULT_INTERPRET_MS };
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

static size_t parse_groups(const char *name, const char *arg)
{
	return strcmp(arg, "all") == 0 ? SIZE_MAX :
					 ss_argument_number(name, arg, 0, GROUPS_MAX);
}

static void take_goroutines(void *input, const char *arg)
{
	struct ss_options *options = input;

	options->goroutines_given = true;
	options->goroutines = parse_groups("goroutines", arg);
}

static void take_tasks(void *input, const char *arg)
{
	struct ss_options *options = input;

	options->tasks_given = true;
	options->tasks = parse_groups("tasks", arg);
}

static const struct ss_option interpret_table[] = {
	{ "all", 'a', NULL,
	  "text: also show idle threads (default: only count them, unless all are idle)",
	  1, SS_SETS_FLAG(struct ss_options, all) },
	{ "no-group", 0, NULL, "Do not merge threads with equal stacks", 1,
	  SS_SETS_FLAG(struct ss_options, no_group) },
	{ "native", 0, NULL,
	  "Also show all native frames of interpreters and virtual machines", 1,
	  SS_SETS_FLAG(struct ss_options, native) },
	{ "goroutines", 0, "N|all",
	  "Go programs, text: show the N largest groups of goroutines with equal stacks; "
	  "0: do not read them (default: 20)",
	  1, .take = take_goroutines },
	{ "tasks", 0, "N|all",
	  "Python, text: show the N largest groups of asyncio's tasks with equal stacks; "
	  "0: do not read them (default: 20)",
	  1, .take = take_tasks },
	SS_OPTION_WAIT_FUNCTIONS(struct ss_options, waits, 1),
	{ "strict", 0, NULL,
	  "Also exit with status 1 if the stack of an idle thread has a guessed frame", 1,
	  SS_SETS_FLAG(struct ss_options, strict) },
	{ "max-total", 0, "MIB",
	  "Limit how much is copied of all stacks together (default: 256)", 4,
	  SS_SETS_NUMBER(struct ss_options, max_total, 1, 1 << 20, .unit = MIB) },
	{ "interpret-timeout", 0, "S",
	  "Limit the time for unwinding, symbolization and output (default: 60; more "
	  "for a large core file)",
	  4,
	  SS_SETS_NUMBER(struct ss_options, interpret_ms, 1, 24 * 3600,
			 .unit = MS_PER_S) },
	{},
};

static void begin_interpret(void *input)
{
	struct ss_options *options = input;

	ss_usage_check(ss_wait_functions_load(&options->waits));
}

/* diff compares recordings, too. */
static char *describe_native(const struct ss_option *option, const void *input)
{
	const struct ss_options *options = input;

	if (options->common.input == SS_FORMAT_DIFF &&
	    strcmp(option->name, "native") == 0)
		return strdup("Also show the native frames of interpreters; cannot be "
			      "used with recordings");
	return strdup(option->doc);
}

static const struct ss_option_child interpret_children[] = {
	{ &ss_format_group, offsetof(struct ss_options, common) },
	{ &ss_common_group, offsetof(struct ss_options, common) },
	{ &ss_limits_group, offsetof(struct ss_options, common) },
	{ &ss_symbols_group, offsetof(struct ss_options, symbols) },
	{},
};

const struct ss_option_group ss_interpret_group = {
	.options = interpret_table,
	.children = interpret_children,
	.begin = begin_interpret,
	.describe = describe_native,
};

static const struct ss_option waits_table[] = {
	{ "no-waits", 0, NULL, "Skip wait analysis", 1,
	  SS_SETS_FLAG(struct ss_options, no_waits) },
	{},
};

const struct ss_option_group ss_waits_group = { .options = waits_table };

static const struct ss_option minidump_table[] = {
	{ "environment", 0, NULL,
	  "minidump: include environment and command line, which may contain secrets", 1,
	  SS_SETS_FLAG(struct ss_options, environment) },
	{},
};

const struct ss_option_group ss_minidump_group = { .options = minidump_table };

static void take_mode(void *mode, const char *name)
{
	if (!ss_mode_find(name, mode))
		ss_usage_fail(
			"--mode: unknown mode '%s'; known modes: auto, stop, no-stop, "
			"live",
			name);
}

/* Where this program is mapped; the linker defines it. */
extern const uint8_t __ehdr_start[];

static ssize_t read_own_image(void *data, uint64_t position, void *bytes, size_t size)
{
	(void)data;
	memcpy(bytes, __ehdr_start + position, size);
	return (ssize_t)size;
}

static void print_version(void *input, const char *arg)
{
	uint8_t id[SS_ELF_BUILD_ID_MAX];
	size_t size =
		ss_build_id_find(read_own_image, NULL, SS_LAYOUT_MEMORY, id, sizeof(id));

	(void)input;
	(void)arg;
	/* errors of stdout: check_stdout() */
	(void)printf("stacksnap %s\nbuild-id: %s", ss_version(), size ? "" : "none");
	for (size_t i = 0; i < size; i++)
		(void)printf("%02x", id[i]);
	(void)printf("\nbuilt with: %s", SS_BUILT_WITH);
#ifdef __GLIBC__
	(void)printf(", glibc %d.%d", __GLIBC__, __GLIBC_MINOR__);
#endif
	(void)putchar('\n');
	exit(0);
}

static void print_completion(void *input, const char *shell)
{
	(void)input;
	if (!ss_completion_print(shell, stdout))
		ss_usage_fail("--completion: unknown shell '%s'; known shells: %s", shell,
			      ss_completion_shells());
	exit(0);
}

static const struct ss_option table[] = {
	{ "no-cache", 0, NULL, "Do not use or update the cache of names", 3,
	  SS_SETS_FLAG(struct ss_options, no_cache) },
	{ "mode", 0, "MODE",
	  "Capture mode: auto, stop, no-stop or live (default: auto); live parses files "
	  "of the process with privileges: use it for trusted targets only",
	  4, .take = take_mode, .offset = offsetof(struct ss_options, mode) },
	{ "timeout", 0, "MS", "Limit the duration of the freeze (default: 1000)", 0,
	  SS_SETS_NUMBER(struct ss_options, timeout_ms, 1, 3600 * MS_PER_S) },
	{ "completion", 0, "SHELL", "Print a completion script for bash, zsh or fish", -1,
	  .take = print_completion },
	{ "version", 'V', NULL,
	  "Print version, build-id, and versions of compiler and libraries", 0,
	  .take = print_version },
	{},
};

static const struct ss_option_child children[] = { { &ss_interpret_group, 0 }, {} };

const struct ss_option_group ss_options_group = {
	.options = table,
	.children = children,
};
