/*
 * stacksnap modules [--follow] PID: lists the modules of a process, and follows changes.
 */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/process.h"
#include "cli/targets.h"
#include "data/snapshot_fields.h"
#include "process/spawn.h"
#include "report/print.h"
#include "report/json.h"
#include "sample/recorder.h"
#include "stacksnap/record.h"

enum { POLL_MS = 10 };

struct modules {
	struct ss_target_options process;
	bool follow;
	const char *format_name; /* NULL: text */
	const char *path;	 /* NULL: standard output */
	struct ss_output *output;
	FILE *out; /* of output */
	struct ss_error *unwritten;
	bool as_json;
	struct ss_json json;
	size_t count;
};

static void modules_deinit(struct modules *modules)
{
	ss_output_close(modules->output);
	ss_error_free(modules->unwritten);
	ss_target_options_deinit(&modules->process);
}

static void check(void *input)
{
	struct modules *modules = input;
	const char *format = modules->format_name;

	ss_target_options_require(&modules->process);
	modules->as_json = format && strcmp(format, "json") == 0;
	if (format && !modules->as_json && strcmp(format, "text") != 0)
		ss_usage_fail_format(format, "text, json");
}

static void take_path(void *path, const char *arg)
{
	ss_usage_check(ss_output_check(arg));
	*(const char **)path = arg;
}

static const struct ss_option table[] = {
	{ "output", 'o', "FILE", "Write to a new FILE; %p is the pid, %t the time", 0,
	  .take = take_path, .offset = offsetof(struct modules, path) },
	{ "follow", 0, NULL,
	  "Print modules as they are loaded and unloaded, until Ctrl-C", 0,
	  SS_SETS_FLAG(struct modules, follow) },
	{},
};

static const struct ss_option_child children[] = {
	{ &ss_target_group, offsetof(struct modules, process) },
	{ &ss_format_name_group, offsetof(struct modules, format_name) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "PID|NAME",
	.doc = "Print the base address, size, build-id and path of each module of a "
	       "process. The process is not stopped.\vWith --follow each line begins "
	       "with the time and a sign: + for loaded, - for unloaded. Formats: text, "
	       "json (with --follow one object in each line).",
	.end = check,
};

static void print_time(uint64_t time_ns, FILE *out)
{
	enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000 };
	time_t seconds = (time_t)(time_ns / NS_PER_S);
	struct tm tm = {};
	char text[32] = "";

	if (localtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%H:%M:%S", &tm); /* it fits */
	(void)fprintf(out, "%s.%03u ", text, (unsigned)(time_ns % NS_PER_S / NS_PER_MS));
}

/* The members of a module; with --follow in a line of its own, with those of the event. */
static void print_json(struct modules *modules, const struct ss_module_event *event)
{
	struct ss_json line = { .out = modules->out };

	if (!modules->follow) {
		ss_json_struct(&modules->json, NULL, &ss_module_schema, event->module, 0);
		return;
	}
	ss_json_open(&line, NULL, '{');
	ss_json_unsigned(&line, "time_ns", event->time_ns);
	ss_json_text(&line, "event", event->loaded ? "load" : "unload");
	ss_json_members(&line, &ss_module_schema, event->module, 0);
	ss_json_close(&line, '}');
	(void)putc('\n', modules->out); /* errors are noticed later */
}

static void print_text(const struct modules *modules, const struct ss_module_event *event)
{
	const struct ss_module *module = event->module;

	if (modules->follow) {
		print_time(event->time_ns, modules->out);
		(void)fputs(event->loaded ? "+ " : "- ", modules->out);
	}
	(void)fprintf(modules->out, "0x%012" PRIx64 " %9" PRIu64 " %-40s ", module->base,
		      module->size, module->build_id ? module->build_id : "-");
	ss_escape_write(module->path, NULL, modules->out);
	(void)fputs(module->deleted ? " (deleted)\n" : "\n", modules->out);
}

static void print_module(void *data, const struct ss_module_event *event)
{
	struct modules *modules = data;
	const struct ss_module *module = event->module;

	modules->count++;
	if (modules->as_json)
		print_json(modules, event);
	else
		print_text(modules, event);
	if (module->problem && !module->build_id && event->loaded)
		ss_failure_warn("%s: %s", module->path, module->problem);
}

/* Says how changes are found. */
static void tell_way(const struct ss_tracker *tracker)
{
	int errnum = ss_tracker_perf_errno(tracker);

	if (errnum)
		ss_failure_warn("perf events are not available (%s): changes are noticed "
				"within %d ms, and have the time at which they were "
				"noticed",
				strerror(errnum), POLL_MS);
	else
		ss_failure_warn(
			"the kernel reports loads with their times (perf events); "
			"unloads are noticed within %d ms",
			POLL_MS);
}

/* Runs until a signal arrives, writing fails, or the process has ended, which is no error. */
static void follow(struct modules *modules, struct ss_tracker *tracker)
{
	_cleanup_close_ int fd = ss_signals_watch();
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	_cleanup_error_ struct ss_error *ended = NULL;

	tell_way(tracker);
	while (!ended) {
		modules->unwritten = ss_output_flush(modules->output);
		if (modules->unwritten || poll(&pollfd, 1, POLL_MS) > 0)
			return;
		ended = ss_tracker_poll(tracker);
	}
	ss_failure_print(ended);
}

static void begin_json(struct modules *modules, const struct ss_target *target)
{
	struct ss_json *json = &modules->json;

	json->out = modules->out;
	ss_json_open(json, NULL, '{');
	ss_json_text(json, "schema", "stacksnap-modules/1");
	ss_json_signed(json, "pid", ss_target_pid(target));
	ss_json_open(json, "modules", '[');
}

static void end_json(struct ss_json *json)
{
	ss_json_close(json, ']');
	ss_json_close(json, '}');
	(void)putc('\n', json->out); /* errors are noticed later */
}

static struct ss_error *list(struct modules *modules, struct ss_target *target)
{
	struct ss_tracker *tracker = NULL;
	struct ss_error *error = ss_tracker_new(target, print_module, modules, &tracker);

	if (!error && modules->as_json && !modules->follow)
		begin_json(modules, target);
	if (!error)
		error = ss_tracker_poll(tracker);
	if (modules->json.out)
		end_json(&modules->json);
	if (!error && modules->follow)
		follow(modules, tracker);
	ss_tracker_free(tracker);
	return error;
}

static int run(int argc, char **argv)
{
	_cleanup_(modules_deinit) struct modules modules = { .process.single = true };
	struct ss_target *target = NULL;

	if (!ss_usage_parse(&ss_command_modules, argc, argv, 0, &modules) ||
	    !ss_target_options_resolve(&modules.process))
		return SS_STATUS_NOTHING;
	const pid_t pid = ss_target_options_pid(&modules.process);
	_cleanup_error_ struct ss_error *error = ss_target_open(pid, &target);
	if (!error)
		error = ss_output_open(modules.path, pid, &modules.output);
	if (!error) {
		modules.out = ss_output_file(modules.output);
		error = list(&modules, target);
	}
	if (modules.count > 0 && !modules.unwritten)
		modules.unwritten = ss_output_flush(modules.output);
	ss_target_close(target);
	ss_failure_print(error);
	ss_failure_print(modules.unwritten);
	if (modules.unwritten || modules.count == 0)
		return SS_STATUS_NOTHING;
	return error ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

const struct ss_command ss_command_modules = {
	.name = "modules",
	.formats = "text json",
	.summary = "list the modules of a process, and follow changes",
	.options = &group,
	.run = run,
};
