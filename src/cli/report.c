/*
 * stacksnap report [OPTIONS] RECORDING|DIRECTORY|-...: shows or converts recordings.
 */
#include "cli/report.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/interpret.h"
#include "cli/options.h"
#include "diagnose/wait_table.h"

/* Options ------------------------------------------------------------------------- */

enum { DEFAULT_ROWS = 20, DEFAULT_THRESHOLD = 1 };

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

static void take_time(const char *name, const char *text, struct ss_time_argument *ret)
{
	if (!ss_time_argument_parse(text, ret))
		ss_usage_fail(
			"--%s: '%s' is not a time: expected seconds since the start, "
			"HH:MM:SS, or "
			"YYYY-MM-DD HH:MM:SS",
			name, text);
}

static void take_from(void *from, const char *arg)
{
	take_time("from", arg, from);
}

static void take_to(void *to, const char *arg)
{
	take_time("to", arg, to);
}

static void take_module(void *input, const char *text)
{
	struct ss_report_arguments *arguments = input;
	regex_t *pattern = ss_vector_push(&arguments->modules);
	char why[SS_REGEX_WHY_MAX];

	if (!pattern)
		ss_usage_fail("out of memory");
	if (ss_regex_compile(text, pattern, why))
		return;
	arguments->modules.count--;
	ss_usage_fail("--module: '%s' is not a regular expression: %s", text, why);
}

static void take_weight(void *by_time, const char *arg)
{
	if (strcmp(arg, "time") != 0 && strcmp(arg, "hits") != 0)
		ss_usage_fail("invalid --weight '%s': hits or time", arg);
	*(bool *)by_time = strcmp(arg, "time") == 0;
}

static void take_by(void *input, const char *text)
{
	static const char label[] = "label";
	struct ss_report_arguments *a = input;
	size_t size = sizeof(label) - 1;

	a->by_host = strcmp(text, "host") == 0;
	a->by_label = NULL;
	if (strcmp(text, label) == 0)
		a->by_label = "";
	else if (strncmp(text, label, size) == 0 && text[size] == ':' && text[size + 1])
		a->by_label = text + size + 1;
	else if (!a->by_host)
		ss_usage_fail("--by: '%s' is not host, label, or label: and a key", text);
}

static const struct ss_option table[] = {
	{ "threshold", 0, "PERCENT",
	  "text: omit calls with a share below PERCENT (default: 1)", 1,
	  SS_SETS_NUMBER(struct ss_report_arguments, threshold_percent, 0, 100) },
	{ "native", 0, NULL, "Also show the native frames of interpreters", 1,
	  SS_SETS_FLAG(struct ss_report_arguments, native) },
	{ "by", 0, "WHAT", "Group stacks by host, by label (all labels), or by label:KEY",
	  1, .take = take_by },
	{ "diff", 0, NULL, "Compare two recordings or directories: text, json or folded",
	  1, SS_SETS_FLAG(struct ss_report_arguments, diff) },
	{ "rows", 0, "N", "text: limit the lines of each table (default: 20)", 1,
	  SS_SETS_NUMBER(struct ss_report_arguments, rows, 0, INT_MAX) },
	{ "weight", 0, "WEIGHT",
	  "Traces: weight stacks by hits, or by time in scopes, without that in inner "
	  "scopes (default: hits)",
	  1, .take = take_weight,
	  .offset = offsetof(struct ss_report_arguments, by_time) },
	SS_OPTION_WAIT_FUNCTIONS(struct ss_report_arguments, waits, 1),
	{ .doc = "Samples:", .group = 5 },
	{ "from", 0, "TIME",
	  "Omit samples before TIME: seconds since the start, or [DATE ]HH:MM:SS", 0,
	  .take = take_from, .offset = offsetof(struct ss_report_arguments, from) },
	{ "to", 0, "TIME", "Omit samples from TIME on", 0, .take = take_to,
	  .offset = offsetof(struct ss_report_arguments, to) },
	{ "module", 0, "REGEX",
	  "Select stacks that pass through a module whose path matches; may be repeated",
	  0, .take = take_module },
	{},
};

static void begin(void *input)
{
	struct ss_report_arguments *arguments = input;

	ss_usage_check(ss_wait_functions_load(&arguments->waits));
}

static bool take_argument(void *input, char **argv, bool quoted)
{
	struct ss_report_arguments *arguments = input;

	(void)quoted;
	ss_argument_add(ss_vector_push(&arguments->files), *argv);
	return false;
}

static void refuse_none(void *input)
{
	(void)input;
	ss_usage_fail("expected a recording");
}

static void check(void *input)
{
	const struct ss_report_arguments *a = input;

	if (!a->diff)
		return;
	if (a->files.count != 2)
		ss_usage_fail("--diff compares two recordings or directories");
	if (!a->common.format->write_profile_diff)
		ss_usage_fail("--diff: the formats are text, json and folded");
	else if (a->by_time && a->common.format != &ss_format_folded)
		ss_usage_fail("--diff: with --weight=time the format is folded");
}

static void write_help(FILE *out)
{
	ss_format_write_help(SS_FORMAT_PROFILE, out);
	(void)fputs("\nExit status: 0 complete, 1 something is missing (a part of a "
		    "recording, "
		    "or a module's file), 2 nothing could be shown, 64 wrong usage.\n",
		    out);
}

static const struct ss_option_child children[] = {
	{ &ss_format_group, offsetof(struct ss_report_arguments, common) },
	{ &ss_common_group, offsetof(struct ss_report_arguments, common) },
	{ &ss_selection_group, offsetof(struct ss_report_arguments, selection) },
	{ &ss_symbols_group, offsetof(struct ss_report_arguments, symbols) },
	{ &ss_row_group, offsetof(struct ss_report_arguments, labels) },
	{},
};

static const struct ss_option_group group = {
	.options = table,
	.children = children,
	.args_doc = "RECORDING|DIRECTORY|-...",
	.doc = "Show recordings, or convert them. Several recordings "
	       "are merged. A directory stands for the recordings in it; if it has none, "
	       "the crash reports in it are counted.\v",
	.begin = begin,
	.argument = take_argument,
	.none = refuse_none,
	.end = check,
	.write_help = write_help,
};

/* The command --------------------------------------------------------------------- */

struct report {
	struct ss_report_arguments arguments;
	struct ss_report_analysis analysis;
	struct ss_debuginfod *debuginfod; /* or NULL */
};

static void report_deinit(struct report *report)
{
	ss_report_analysis_deinit(&report->analysis);
	ss_debuginfod_free(report->debuginfod);
	ss_report_arguments_deinit(&report->arguments);
}

static void open_files(struct report *report)
{
	struct ss_report_files *files = &report->analysis.files;

	for (size_t i = 0; i < report->arguments.files.count; i++) {
		files->set = (unsigned)i;
		_cleanup_error_ struct ss_error *error =
			ss_report_files_open(files, report->arguments.files.items[i]);
		if (!error)
			continue;
		files->missing = true;
		ss_failure_print(error);
	}
}

/* The command that reads the only argument, a directory without recordings; NULL: there is none. */
static const struct ss_command *find_reader(const struct ss_report_arguments *arguments)
{
	struct stat status;
	const struct ss_command *command;

	if (arguments->files.count != 1 ||
	    stat(arguments->files.items[0], &status) != 0 || !S_ISDIR(status.st_mode))
		return NULL;
	for (size_t i = 0; (command = ss_command_at(i)); i++) {
		if (command->report)
			return command;
	}
	return NULL;
}

static int report_no_recording(struct report *report)
{
	const struct ss_command *reader = find_reader(&report->arguments);
	int status = SS_STATUS_NOTHING;

	if (reader) {
		_cleanup_error_ struct ss_error *error =
			reader->report(&report->arguments, &status);
		ss_failure_print(error);
		if (status == SS_STATUS_WHOLE && report->analysis.files.missing)
			status = SS_STATUS_PARTIAL;
	} else if (!report->analysis.files.missing) {
		ss_failure_warn("there are no recordings in these directories");
	}
	return status;
}

static struct ss_error *analyze(struct report *report, int *ret)
{
	struct ss_error *error =
		ss_debuginfod_open(&report->arguments.symbols, &report->debuginfod);

	report->analysis.requests.debuginfod = report->debuginfod;
	return error ? error : ss_report_analysis_run(&report->analysis, ret);
}

static int run(int argc, char **argv)
{
	_cleanup_(report_deinit) struct report report = {};
	int status = SS_STATUS_NOTHING;

	ss_report_arguments_init(&report.arguments);
	if (!ss_usage_parse(&ss_command_report, argc, argv, 0, &report.arguments))
		return SS_STATUS_NOTHING;
	ss_row_arguments_begin(&report.arguments.labels, 0);
	report.analysis.arguments = &report.arguments;
	open_files(&report);
	if (report.analysis.files.items.count == 0)
		return report_no_recording(&report);
	_cleanup_error_ struct ss_error *error = analyze(&report, &status);
	return ss_failure_status(error, status);
}

const struct ss_command ss_command_report = {
	.name = "report",
	.input = SS_FORMAT_PROFILE,
	.summary = "show recordings, or convert them",
	.options = &group,
	.run = run,
};
