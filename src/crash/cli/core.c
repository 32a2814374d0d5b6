/*
 * stacksnap core [OPTIONS] COREFILE [PROGRAM]: the stacks in a core file.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/core_capture.h"
#include "crash/cli/core.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"

enum {
	FIRST_FD = STDERR_FILENO + 1,
	MS_MIN = 60 * 1000,
	MS_MAX = 3600 * 1000,
	BYTES_PER_MS = 4000,
};

enum action { ACTION_SHOW, ACTION_HANDLE, ACTION_INSTALL, ACTION_UNINSTALL };

enum { QUOTA_MIB = 64, QUOTA_MAX = 1 << 20, RATE = 10, RATE_MAX = 1 << 20 };

struct core {
	struct ss_options options;
	struct ss_core_handler handler;
	enum action action;
	const char *path;
	const char *program; /* or NULL */
	int fd;
	struct ss_selection_run run;
	struct ss_output *output;
	struct ss_debuginfod *debuginfod; /* or NULL */
};

static void core_deinit(struct core *core)
{
	close_cleanup(&core->fd);
	ss_output_close(core->output);
	ss_debuginfod_free(core->debuginfod);
	ss_options_deinit(&core->options);
}

/* Compressed files are read whole, once or twice: xz makes 20 MB/s of what is compressed
   well. */
static unsigned interpret_ms(const struct stat *status)
{
	uint64_t bytes = (uint64_t)status->st_blocks * 512;

	return (unsigned)SS_MIN(MS_MIN + bytes / BYTES_PER_MS, (uint64_t)MS_MAX);
}

static struct ss_error *open_file(struct core *core)
{
	struct stat status;

	core->fd = open(core->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int errnum = errno;
	if (core->fd < 0)
		return ss_argument_open_error(errnum, core->path, "");
	if (fstat(core->fd, &status) != 0)
		return NULL;
	if (core->options.interpret_ms == 0)
		core->options.interpret_ms = interpret_ms(&status);
	if (!S_ISREG(status.st_mode))
		return ss_error_new(
			SS_ERROR_INVALID,
			"'%s' is %s: a core file must be a regular file", core->path,
			S_ISDIR(status.st_mode) ? "a directory" : "a pipe or device");
	return NULL;
}

/* In the sandbox. */
static struct ss_error *load(void *data, const struct ss_sandbox_attempt *attempt,
			     struct ss_capture **ret)
{
	struct core *core = data;
	const struct ss_core_options options = {
		.size = sizeof(options),
		.program = core->program,
		.max_stack = core->options.common.max_stack,
		.max_total = core->options.max_total,
		.no_waits = core->options.no_waits,
		.filter = ss_selection_run_is_active(&core->run) ?
				  ss_selection_run_filter :
				  NULL,
		.filter_data = &core->run,
		.planner = core->options.goroutines &&
					   !ss_selection_run_is_active(&core->run) ?
				   ss_core_handler_plan_goroutines :
				   NULL,
		.planner_data = attempt->session,
	};
	int fd = fcntl(core->fd, F_DUPFD_CLOEXEC, FIRST_FD);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot read '%s'", core->path);
	_cleanup_error_ struct ss_error *error =
		ss_capture_read_core(fd, attempt->session, &options, ret);
	return error ? ss_error_new(ss_error_code(error), "'%s': %s", core->path,
				    ss_error_message(error)) :
		       NULL;
}

static struct ss_error *show(struct core *core, bool *ret)
{
	__attribute__((cleanup(ss_reading_deinit))) struct ss_reading reading = {
		.options = &core->options,
		.run = &core->run,
		.color = ss_options_want_color(&core->options.common),
	};
	struct ss_source source = { .data = core, .count = 1, .load = load };
	struct ss_interpret_options options;
	struct ss_error *error = open_file(core);

	if (!error)
		error = ss_output_open(core->options.common.output, 0, &core->output);
	if (!error)
		error = ss_debuginfod_open(&core->options.symbols, &core->debuginfod);
	if (error)
		return error;
	reading.requests.debuginfod = core->debuginfod;
	reading.output = core->output;
	ss_reading_configure(&reading, &options);
	options.last_level = SS_SANDBOX_RAW; /* a file is not read with privileges */
	ss_row_arguments_begin(&core->options.common.rows, 0);
	ss_row_source_init(&reading.rows, &core->options.common.rows);
	reading.rows.boot_id[0] = '\0'; /* it may be of another machine */
	return ss_reading_show(&reading, &source, &options, ret);
}

/* Options ----------------------------------------------------------------------- */

static bool take_argument(void *input, char **argv, bool quoted)
{
	struct core *core = input;
	struct ss_core_handler *handler = &core->handler;

	(void)quoted;
	if (core->action == ACTION_HANDLE &&
	    handler->argument_count < SS_CORE_HANDLER_ARGUMENTS)
		handler->arguments[handler->argument_count++] = *argv;
	else if (core->program || core->action != ACTION_SHOW)
		ss_usage_fail("unexpected argument '%s'", *argv);
	else if (core->path)
		core->program = *argv;
	else
		core->path = *argv;
	return false;
}

static void refuse_none(void *input)
{
	const struct core *core = input;

	if (core->action == ACTION_SHOW)
		ss_usage_fail("expected a core file");
}

static void set_action(struct core *core, enum action action)
{
	if (core->action != ACTION_SHOW)
		ss_usage_fail(
			"--handler, --install and --uninstall are mutually exclusive");
	core->action = action;
	core->handler.action_at = (size_t)ss_usage_next() - 2; /* without argv[0] */
}

static void take_dry_run(void *input, const char *arg)
{
	struct core *core = input;

	(void)arg;
	core->handler.dry_run = true;
	core->handler.dry_run_at = (size_t)ss_usage_next() - 2;
}

static void take_install(void *input, const char *arg)
{
	(void)arg;
	set_action(input, ACTION_INSTALL);
}

static void take_uninstall(void *input, const char *arg)
{
	(void)arg;
	set_action(input, ACTION_UNINSTALL);
}

static void take_handler(void *input, const char *arg)
{
	(void)arg;
	set_action(input, ACTION_HANDLE);
}

static const struct ss_option table[] = {
	{ .doc = "Crash handler:", .group = 5 },
	{ "install", 0, NULL,
	  "Make this program the kernel's crash handler, now and after each boot", 0,
	  .take = take_install },
	{ "uninstall", 0, NULL, "Restore the previous handler", 0,
	  .take = take_uninstall },
	{ "dry-run", 0, NULL, "With --install or --uninstall: only show what they do", 0,
	  .take = take_dry_run },
	{ "handler", 0, NULL,
	  "Write a report about the process whose dump is on standard input; called by "
	  "the kernel, with the arguments %P %I %s %t %d %F",
	  0, .take = take_handler },
	{ "directory", 0, "DIR", "Directory of reports (default: " SS_CORE_DIRECTORY ")",
	  0, SS_SETS_TEXT(struct core, handler.directory) },
	{ "quota", 0, "MIB",
	  "Keep at most MIB MiB of reports, an eighth of it for each user (default: 64)",
	  0, SS_SETS_NUMBER(struct core, handler.quota, 1, QUOTA_MAX, .unit = 1 << 20) },
	{ "rate", 0, "N",
	  "Write at most N reports per minute for each user (default: 10)", 0,
	  SS_SETS_NUMBER(struct core, handler.rate, 1, RATE_MAX) },
	{ "forward", 0, "COMMAND", "Also pass the whole dump to another handler", 0,
	  SS_SETS_TEXT(struct core, handler.forward) },
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_interpret_group, offsetof(struct core, options) },
	{ &ss_minidump_group, offsetof(struct core, options) },
	{ &ss_row_group, offsetof(struct core, options.common.rows) },
	{ &ss_selection_group, offsetof(struct core, options.selection) },
	{ &ss_waits_group, offsetof(struct core, options) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "COREFILE [PROGRAM]\n--install|--uninstall",
	.doc = "Print the stacks of all threads in a core file.\vPROGRAM is used only if "
	       "it is the build that dumped core (default: the file at the path that it "
	       "had).",
	.argument = take_argument,
	.none = refuse_none,
};

static int run(int argc, char **argv)
{
	const struct ss_target_argument nothing = {};
	_cleanup_(core_deinit) struct core core = { .fd = -1 };
	bool missing = false;

	ss_options_init(&core.options);
	core.handler = (struct ss_core_handler){ .settings = &core.options,
						 .directory = SS_CORE_DIRECTORY,
						 .quota = (uint64_t)QUOTA_MIB << 20,
						 .rate = RATE,
						 .options = (const char *const *)argv + 1,
						 .option_count = (size_t)argc - 1 };
	core.options.mode = SS_MODE_CORE;
	core.options.interpret_ms = 0; /* depends on the file */
	core.options.common.no_pid = true;
	core.run = (struct ss_selection_run){ .selection = &core.options.selection,
					      .argument = &nothing };
	if (!ss_usage_parse(&ss_command_core, argc, argv, 0, &core))
		return SS_STATUS_NOTHING;
	if (core.handler.dry_run && core.action != ACTION_INSTALL &&
	    core.action != ACTION_UNINSTALL)
		ss_usage_fail("--dry-run needs --install or --uninstall");
	struct ss_error *error = NULL;
	switch (core.action) {
	case ACTION_HANDLE:
		if (!core.options.common.format_name) /* for programs */
			core.options.common.format = &ss_format_json;
		return ss_core_handler_run(&core.handler);
	case ACTION_INSTALL:
		error = ss_core_handler_install(&core.handler);
		break;
	case ACTION_UNINSTALL:
		error = ss_core_handler_uninstall(&core.handler);
		break;
	default:
		error = show(&core, &missing);
	}
	_cleanup_error_ struct ss_error *owned = error;
	return ss_failure_status(owned, missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE);
}

const struct ss_command ss_command_core = {
	.name = "core",
	.report = ss_crash_reports_run,
	.summary = "print the stacks in a core file",
	.options = &group,
	.run = run,
};
