/*
 * stacksnap report [OPTIONS] RECORDING...: names what was recorded, and shows it.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/debuginfod.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "cli/report_options.h"
#include "report/load.h"
#include "view/escape.h"

/* One file that was opened. */
struct opened {
	struct ss_recording *recording; /* owned */
	const char *path;
};

struct report {
	struct ss_report_arguments arguments;
	SS_VECTOR(struct opened) files;
	struct ss_debuginfod *debuginfod; /* or NULL */
	struct ss_session *session;
	struct ss_profile *profile;
	struct ss_output *output;
	bool missing; /* something that was asked for */
};

static void report_deinit(struct report *report)
{
	ss_output_close(report->output);
	ss_profile_free(report->profile);
	for (size_t i = 0; i < report->files.count; i++)
		ss_recording_close(report->files.items[i].recording);
	ss_vector_free(&report->files);
	ss_session_free(report->session);
	ss_debuginfod_free(report->debuginfod);
	ss_report_arguments_deinit(&report->arguments);
}

static struct ss_error *open_file(struct report *report, const char *path)
{
	struct opened *opened = ss_vector_push(&report->files);
	struct ss_error *error = NULL;

	if (!opened)
		return ss_error_no_memory();
	opened->path = path;
	error = ss_recording_open(path, &opened->recording);
	if (error)
		report->files.count--;
	return error;
}

static void open_files(struct report *report)
{
	for (size_t i = 0; i < report->arguments.files.count; i++) {
		_cleanup_error_ struct ss_error *error =
			open_file(report, report->arguments.files.items[i]);
		if (!error)
			continue;
		report->missing = true;
		ss_failure_print(error);
	}
}

static uint64_t first_begin(const struct report *report)
{
	uint64_t begin = UINT64_MAX;

	for (size_t i = 0; i < report->files.count; i++)
		begin = SS_MIN(
			begin,
			ss_recording_info(report->files.items[i].recording)->begin_ns);
	return begin;
}

static bool wants_thread(void *data, pid_t tid, const char *name)
{
	const struct report *report = data;
	const struct ss_target_argument nothing = {};
	const struct ss_selection threads = {
		.tids = report->arguments.selection.tids,
		.patterns = report->arguments.selection.patterns,
	};
	struct ss_selection_run run = { .selection = &threads, .argument = &nothing };

	return ss_selection_run_filter(&run, tid, name, '?');
}

static bool wants_module(void *data, const char *path)
{
	const struct report *report = data;

	for (size_t i = 0; i < report->arguments.modules.count; i++) {
		if (regexec(&report->arguments.modules.items[i], path, 0, NULL, 0) == 0)
			return true;
	}
	return false;
}

static struct ss_error *load_file(struct report *report, const struct opened *file,
				  const struct ss_load_options *options)
{
	struct ss_error *error = NULL;

	if (!report->arguments.raw)
		error = ss_recording_symbolize(file->recording, report->session,
					       report->arguments.symbolize_flags);
	return error ? error :
		       ss_load_recording(report->profile, file->recording, file->path,
					 options);
}

static struct ss_error *load_files(struct report *report)
{
	const struct ss_report_arguments *arguments = &report->arguments;
	uint64_t begin = first_begin(report);
	struct ss_load_options options = {
		.size = sizeof(options),
		.from_ns = ss_moment_resolve(&arguments->from, begin),
		.to_ns = ss_moment_resolve(&arguments->to, begin),
		.states = arguments->selection.states,
		.wants_thread = wants_thread,
		.wants_module = arguments->modules.count ? wants_module : NULL,
		.data = report,
		.raw = arguments->raw,
	};
	struct ss_error *error = NULL;

	report->profile = ss_profile_new();
	if (!report->profile)
		return ss_error_no_memory();
	report->profile->start_ns = SS_MAX(begin, options.from_ns);
	for (size_t i = 0; i < report->files.count && !error; i++)
		error = load_file(report, &report->files.items[i], &options);
	return error;
}

/* Modules that samples are in, and whose file could not be used. */
static struct ss_error *note_modules(struct ss_profile *profile)
{
	_cleanup_free_ bool *used = calloc(profile->modules.count + 1, sizeof(*used));

	if (!used)
		return ss_error_no_memory();
	for (size_t i = 0; i < profile->functions.count; i++) {
		uint64_t module = ss_profile_function_at(profile, i)->module;
		if (module != SS_NUMBER_NOT)
			used[module] = true;
	}
	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_profile_module *module = &profile->modules.items[i];
		if (!used[i] || !module->problem)
			continue;
		if (!ss_profile_note(profile, "%s [%s]: %s", module->path,
				     module->build_id ? module->build_id : "no build-id",
				     module->problem))
			return ss_error_no_memory();
	}
	return NULL;
}

static struct ss_error *open_session(struct report *report)
{
	struct ss_session_options options = {
		.size = sizeof(options),
		.debug_dir = report->arguments.debug_dir,
		.sysroot = report->arguments.sysroot,
	};

	if (report->arguments.debuginfod) {
		struct ss_error *error = ss_debuginfod_new(&report->debuginfod);
		if (error)
			return error;
		options.find_file = ss_debuginfod_find;
		options.find_data = report->debuginfod;
	}
	return ss_session_new(&options, &report->session);
}

static bool has_samples(const struct report *report)
{
	for (size_t i = 0; i < report->files.count; i++) {
		if (ss_recording_info(report->files.items[i].recording)->samples)
			return true;
	}
	return false;
}

/* Why a whole recording has no samples, as its summary tells. */
static const char *why_empty(const struct ss_recording_info *info)
{
	static const char *const reasons[] = {
		[SS_RECORDING_STOPPED] = "it was stopped before the first tick",
		[SS_RECORDING_DURATION] = "its time was over before the first tick",
		[SS_RECORDING_TARGET_END] = "the process had ended before the first tick",
		[SS_RECORDING_LOST] = "the process could not be looked at any more",
		[SS_RECORDING_SNAPSHOT] = "it is a snapshot without threads",
	};

	if (info->ticks && info->end != SS_RECORDING_SNAPSHOT)
		return "at no tick was there a thread as asked for";
	return (size_t)info->end < SS_ARRAY_SIZE(reasons) && reasons[info->end] ?
		       reasons[info->end] :
		       "it was cut before the first one was written";
}

static struct ss_error *nothing_recorded(const struct report *report)
{
	const struct opened *first = &report->files.items[0];

	if (report->files.count == 1)
		return ss_error_new(SS_ERROR_INVALID, "'%s' has no samples: %s",
				    first->path,
				    why_empty(ss_recording_info(first->recording)));
	for (size_t i = 0; i < report->files.count; i++)
		ss_failure_warn(
			"'%s': %s", report->files.items[i].path,
			why_empty(ss_recording_info(report->files.items[i].recording)));
	return ss_error_new(SS_ERROR_INVALID, "none of these recordings has samples");
}

static struct ss_error *nothing_selected(const struct ss_report_arguments *arguments)
{
	const struct {
		const char *option;
		bool given;
	} selections[] = {
		{ "--from", arguments->from.is_set },
		{ "--to", arguments->to.is_set },
		{ "--thread", arguments->selection.tids.count ||
				      arguments->selection.patterns.count },
		{ "--state", arguments->selection.states != NULL },
		{ "--module", arguments->modules.count != 0 },
	};
	char given[64] = "";

	for (size_t i = 0; i < SS_ARRAY_SIZE(selections); i++) {
		size_t used = strlen(given);
		if (selections[i].given)
			(void)snprintf(given + used, sizeof(given) - used, "%s%s",
				       used ? ", " : "", selections[i].option);
	}
	if (!*given)
		return ss_error_new(SS_ERROR_INVALID, "no sample could be read");
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID, "there is no sample that was asked for"),
		"without %s there are samples", given);
}

static struct ss_error *check_selection(const struct report *report)
{
	if (report->profile->samples)
		return NULL;
	for (size_t i = 0; i < report->profile->notes.count; i++)
		ss_failure_warn("%s", report->profile->notes.items[i]);
	return has_samples(report) ? nothing_selected(&report->arguments) :
				     nothing_recorded(report);
}

static struct ss_error *show(struct report *report)
{
	const struct ss_report_arguments *arguments = &report->arguments;
	struct ss_error *error = ss_output_open(arguments->output, 0, &report->output);

	if (error)
		return error;
	const struct ss_report_options options = {
		.size = sizeof(options),
		.color = ss_output_wants_color(report->output),
		.verbose = arguments->verbose,
		.raw = arguments->raw,
		.threshold = arguments->threshold_percent,
		.rows = arguments->rows,
	};
	error = arguments->reporter->write(report->profile, &options,
					   ss_output_file(report->output));
	return error ? error : ss_output_flush(report->output);
}

static void tell(struct report *report)
{
	const struct ss_profile *profile = report->profile;

	report->missing = report->missing || profile->notes.count;
	for (size_t i = 0; i < profile->notes.count; i++) {
		if (!report->arguments.reporter->tells)
			ss_failure_warn("%s", profile->notes.items[i]);
	}
}

static uint64_t now_ns(void)
{
	struct timespec now = {};

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail */
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct ss_error *make(struct report *report)
{
	uint64_t begin = now_ns();
	struct ss_error *error = open_session(report);

	if (!error)
		error = load_files(report);
	uint64_t loaded = now_ns();
	if (!error)
		error = check_selection(report);
	if (!error)
		error = note_modules(report->profile);
	if (!error)
		error = show(report);
	if (!error && report->arguments.verbose)
		ss_failure_warn("read and named in %.1f ms, written in %.1f ms",
				(double)(loaded - begin) / 1e6,
				(double)(now_ns() - loaded) / 1e6);
	return error;
}

static int run(int argc, char **argv)
{
	_cleanup_(report_deinit) struct report report = {};

	ss_report_arguments_init(&report.arguments);
	error_t errnum =
		argp_parse(&ss_report_argp, argc, argv, 0, NULL, &report.arguments);
	if (errnum) {
		ss_failure_warn("%s", strerror(errnum));
		return SS_STATUS_NOTHING;
	}
	open_files(&report);
	if (report.files.count == 0)
		return SS_STATUS_NOTHING;
	_cleanup_error_ struct ss_error *error = make(&report);
	if (error) {
		ss_failure_print(error);
		return SS_STATUS_NOTHING;
	}
	tell(&report);
	return report.missing ? SS_STATUS_PARTIAL : SS_STATUS_WHOLE;
}

const struct ss_command ss_command_report = {
	.name = "report",
	.summary = "shows recordings, or converts them",
	.argp = &ss_report_argp,
	.run = run,
};
