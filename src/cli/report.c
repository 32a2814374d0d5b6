/*
 * stacksnap report [OPTIONS] RECORDING|DIRECTORY|-...: shows or converts recordings.
 */
#include <argp.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/failure.h"
#include "cli/report_analysis.h"
#include "cli/usage.h"

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
		if (error)
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
	struct ss_error *error = NULL;

	if (report->arguments.symbols.debuginfod)
		error = ss_debuginfod_new(&report->debuginfod);
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
	if (error) {
		ss_failure_print(error);
		return SS_STATUS_NOTHING;
	}
	return status;
}

const struct ss_command ss_command_report = {
	.name = "report",
	.input = SS_FORMAT_PROFILE,
	.summary = "show recordings, or convert them",
	.argp = &ss_report_argp,
	.run = run,
};
