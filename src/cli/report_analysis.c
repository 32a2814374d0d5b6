#include "cli/report_analysis.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cli/analysis.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "profile/load.h"
#include "profile/locks.h"

SS_DEFINE_CLEANUP(struct ss_wait_table, table, ss_wait_table_free)

enum { FIRST_FD = STDERR_FILENO + 1 };

/* Long recordings take minutes; this limit ends an analysis that hangs. */
enum { TIMEOUT_MS = 3600 * 1000 };

/* Limits of the result, in bytes. It is kept in memory, like the profile. */
#define OUTPUT_MIN ((uint64_t)192 << 20)
#define OUTPUT_PER_BYTE 128
#define OUTPUT_MAX ((uint64_t)1 << 30)

void ss_report_analysis_deinit(struct ss_report_analysis *analysis)
{
	for (size_t i = 0; i < analysis->files.count; i++) {
		ss_recording_close(analysis->files.items[i].recording);
		close_cleanup(&analysis->files.items[i].fd);
	}
	ss_vector_free(&analysis->files);
	ss_file_requests_deinit(&analysis->requests);
}

struct ss_error *ss_report_analysis_add(struct ss_report_analysis *analysis, int fd,
					const char *name)
{
	_cleanup_close_ int owned = fd;
	struct stat status;

	if (owned < 0 || (fstat(owned, &status) == 0 && !S_ISREG(status.st_mode)))
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is %s: a recording must be a regular file",
				    name,
				    owned < 0		    ? "not open" :
				    S_ISDIR(status.st_mode) ? "a directory" :
							      "a pipe or device");
	struct ss_report_file *file = ss_vector_push(&analysis->files);
	if (!file)
		return ss_error_no_memory();
	*file = (struct ss_report_file){ .path = name, .fd = take_fd(owned) };
	return NULL;
}

struct ss_error *ss_report_analysis_open(struct ss_report_analysis *analysis,
					 const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot open '%s'", path);
	return ss_report_analysis_add(analysis, fd, path);
}
/* In the sandbox ------------------------------------------------------------ */

/* One attempt. */
struct report {
	struct ss_report_analysis *analysis;
	const struct ss_report_arguments *arguments;
	const struct ss_sandbox_attempt *attempt;
	SS_VECTOR(struct ss_report_file) files; /* those that are recordings */
	struct ss_profile *profile;
	bool raw;
	bool missing; /* a recording or a symbol file could not be read */
};

static void report_deinit(struct report *report)
{
	ss_vector_free(&report->files);
	ss_profile_free(report->profile);
}

static struct ss_error *read_file(struct report *report, struct ss_report_file *file)
{
	_cleanup_close_ int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, FIRST_FD);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot read '%s'", file->path);
	_cleanup_error_ struct ss_error *error =
		ss_recording_open_fd(take_fd(fd), &file->recording);
	if (error)
		return ss_error_new(ss_error_code(error), "'%s': %s", file->path,
				    ss_error_message(error));
	struct ss_report_file *slot = ss_vector_push(&report->files);
	if (!slot)
		return ss_error_no_memory();
	*slot = *file;
	return NULL;
}

static void read_files(struct report *report)
{
	struct ss_report_analysis *analysis = report->analysis;

	for (size_t i = 0; i < analysis->files.count; i++) {
		_cleanup_error_ struct ss_error *error =
			read_file(report, &analysis->files.items[i]);
		if (!error)
			continue;
		report->missing = true;
		ss_failure_print(error);
	}
}

static int compare_begin(const void *a, const void *b)
{
	const struct ss_report_file *x = a;
	const struct ss_report_file *y = b;
	uint64_t first = ss_recording_info(x->recording)->begin_ns;
	uint64_t second = ss_recording_info(y->recording)->begin_ns;

	if (first != second)
		return first < second ? -1 : 1;
	return (x->fd > y->fd) - (x->fd < y->fd); /* the order of the arguments */
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

static bool selects_thread(void *data, pid_t tid, const char *name)
{
	const struct report *report = data;
	const struct ss_target_argument nothing = {};
	const struct ss_selection threads = {
		.tids = report->arguments->selection.tids,
		.patterns = report->arguments->selection.patterns,
	};
	struct ss_selection_run run = { .selection = &threads, .argument = &nothing };

	return ss_selection_run_filter(&run, tid, name, '?');
}

static bool selects_module(void *data, const char *path)
{
	const struct report *report = data;

	for (size_t i = 0; i < report->arguments->modules.count; i++) {
		if (regexec(&report->arguments->modules.items[i], path, 0, NULL, 0) == 0)
			return true;
	}
	return false;
}

static struct ss_error *symbolize_files(struct report *report)
{
	struct ss_error *error = NULL;

	ss_sandbox_enter(report->attempt, SS_SANDBOX_SYMBOLIZE);
	for (size_t i = 0; i < report->files.count && !report->raw && !error; i++)
		error = ss_recording_symbolize(report->files.items[i].recording,
					       report->attempt->session,
					       report->arguments->symbols.flags);
	return error;
}

static struct ss_error *load_files(struct report *report)
{
	const struct ss_report_arguments *arguments = report->arguments;
	uint64_t begin = first_begin(report);
	struct ss_load_options options = {
		.size = sizeof(options),
		.from_ns = ss_time_argument_resolve(&arguments->from, begin),
		.to_ns = ss_time_argument_resolve(&arguments->to, begin),
		.states = arguments->selection.states,
		.selects_thread = selects_thread,
		.selects_module = arguments->modules.count ? selects_module : NULL,
		.data = report,
		.raw = report->raw,
		.native = arguments->native,
	};
	struct ss_error *error = NULL;

	ss_sandbox_enter(report->attempt, SS_SANDBOX_OUTPUT);
	report->profile = ss_profile_new();
	if (!report->profile)
		return ss_error_no_memory();
	report->profile->start_ns = SS_MAX(begin, options.from_ns);
	qsort(report->files.items, report->files.count, sizeof(*report->files.items),
	      compare_begin);
	for (size_t i = 0; i < report->files.count && !error; i++)
		error = ss_load_recording(report->profile,
					  report->files.items[i].recording,
					  report->files.items[i].path, &options);
	return error;
}

/* Those of the recordings, and of this machine and the options, which take precedence. */
static struct ss_error *make_table(const struct report *report,
				   struct ss_wait_table **ret)
{
	_cleanup_(table_cleanup) struct ss_wait_table *table = NULL;
	_cleanup_free_ char *own = NULL;
	struct ss_error *error = ss_wait_table_new(&table);

	if (!error && report->arguments->waits)
		error = ss_wait_table_added(report->arguments->waits, &own);
	for (size_t i = 0; i < report->files.count && !error; i++) {
		const struct ss_report_file *file = &report->files.items[i];
		const char *text = ss_recording_info(file->recording)->wait_functions;
		_cleanup_error_ struct ss_error *invalid =
			text ? ss_wait_table_add(table, file->path, text, strlen(text)) :
			       NULL;
		if (invalid)
			ss_failure_warn("%s", ss_error_message(invalid));
	}
	if (!error && own)
		error = ss_wait_table_add(table, "own functions", own, strlen(own));
	if (!error)
		*ret = take_ptr(table);
	return error;
}

static struct ss_error *find_locks(const struct report *report)
{
	_cleanup_(table_cleanup) struct ss_wait_table *table = NULL;
	struct ss_error *error = make_table(report, &table);

	if (error)
		return error;
	return ss_profile_find_locks(report->profile, table) ? NULL :
							       ss_error_no_memory();
}

/* Modules that samples are in, and whose file could not be used. */
static struct ss_error *note_modules(struct ss_profile *profile)
{
	_cleanup_free_ bool *used = calloc(profile->modules.count + 1, sizeof(*used));

	if (!used)
		return ss_error_no_memory();
	for (size_t i = 0; i < profile->functions.count; i++) {
		uint64_t module = ss_profile_function_at(profile, i)->module;
		if (module != SS_ID_NONE)
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

/* For failures of earlier attempts. */
static const char *module_path(const void *data, size_t index)
{
	const struct report *report = data;
	const struct ss_recording *recording = report->files.items[0].recording;

	return index < ss_recording_module_count(recording) ?
		       ss_recording_module(recording, index)->module->path :
		       NULL;
}

static struct ss_error *note_failures(struct report *report)
{
	_cleanup_free_ char *problem = ss_analysis_problem(
		report->attempt, module_path, report, report->arguments->symbols.raw);

	return !problem || ss_profile_note(report->profile, "%s", problem) ?
		       NULL :
		       ss_error_no_memory();
}

static bool has_samples(const struct report *report)
{
	for (size_t i = 0; i < report->files.count; i++) {
		if (ss_recording_info(report->files.items[i].recording)->samples)
			return true;
	}
	return false;
}

/* Why a recording has no samples, according to its summary. */
static const char *why_empty(const struct ss_recording_info *info)
{
	static const char *const reasons[] = {
		[SS_RECORDING_STOPPED] = "it was stopped before the first tick",
		[SS_RECORDING_DURATION] = "its duration elapsed before the first tick",
		[SS_RECORDING_TARGET_END] = "the process had ended before the first tick",
		[SS_RECORDING_LOST] = "the process could no longer be observed",
		[SS_RECORDING_SNAPSHOT] = "it is a snapshot without threads",
	};

	if (info->ticks && info->end != SS_RECORDING_SNAPSHOT)
		return "the selection matched no thread at any tick";
	return (size_t)info->end < SS_ARRAY_SIZE(reasons) && reasons[info->end] ?
		       reasons[info->end] :
		       "it is truncated before the first sample";
}

static struct ss_error *nothing_recorded(const struct report *report)
{
	const struct ss_report_file *first = &report->files.items[0];

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
		ss_error_new(SS_ERROR_INVALID, "the selection matches no sample"),
		"there are samples without %s", given);
}

static struct ss_error *check_selection(const struct report *report)
{
	if (report->profile->samples)
		return NULL;
	for (size_t i = 0; i < report->profile->notes.count; i++)
		ss_failure_warn("%s", report->profile->notes.items[i]);
	return has_samples(report) ? nothing_selected(report->arguments) :
				     nothing_recorded(report);
}

static struct ss_error *write_report(struct report *report)
{
	const struct ss_report_arguments *arguments = report->arguments;
	const struct ss_format_options options = {
		.size = sizeof(options),
		.color = ss_options_want_color(&arguments->common),
		.verbose = arguments->common.verbose,
		.raw = report->raw,
		.threshold = arguments->threshold_percent,
		.rows = arguments->rows,
	};
	FILE *out = NULL;
	struct ss_error *error = ss_analysis_open(report->attempt, &out);

	if (error)
		return error;
	error = arguments->common.format->write_profile(report->profile, &options, out);
	return ss_analysis_close(out, error);
}

/* Names rest on less than a build-id: not a failure. */
static void print_by_file(const struct report *report)
{
	const struct ss_profile *profile = report->profile;

	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_profile_module *module = &profile->modules.items[i];
		if (module->by_file && !report->raw)
			ss_failure_warn(
				"%s: it has no build-id: names rest on size, headers "
				"and symbols of its file",
				module->path);
	}
}

static void print_notes(struct report *report)
{
	const struct ss_profile *profile = report->profile;

	report->missing = report->missing || profile->notes.count > profile->harmless;
	for (size_t i = 0; i < profile->notes.count; i++) {
		if (!report->arguments->common.format->explains)
			ss_failure_warn("%s", profile->notes.items[i]);
	}
	if (!report->arguments->common.format->explains)
		print_by_file(report);
}

static struct ss_error *make_report(struct report *report, uint64_t begin_ns)
{
	struct ss_error *error = load_files(report);
	uint64_t loaded_ns = ss_now_ns();

	if (!error)
		error = find_locks(report);
	if (!error)
		error = check_selection(report);
	if (!error)
		error = note_failures(report);
	if (!error)
		error = note_modules(report->profile);
	if (!error)
		error = write_report(report);
	if (!error && report->arguments->common.verbose)
		ss_failure_warn("read and symbolized in %.1f ms, written in %.1f ms",
				(double)(loaded_ns - begin_ns) / 1e6,
				(double)(ss_now_ns() - loaded_ns) / 1e6);
	if (!error)
		print_notes(report);
	return error;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	struct ss_report_analysis *analysis = data;
	__attribute__((cleanup(report_deinit))) struct report report = {
		.analysis = analysis,
		.arguments = analysis->arguments,
		.attempt = attempt,
		.raw = attempt->level != SS_SANDBOX_NAMES,
		.missing = analysis->missing,
	};
	uint64_t begin_ns = ss_now_ns();
	bool requested = false;

	read_files(&report);
	ss_sandbox_set_value(attempt, SS_STATUS_NOTHING);
	if (report.files.count == 0)
		return NULL;
	_cleanup_error_ struct ss_error *error = symbolize_files(&report);
	if (!error)
		error = ss_file_requests_send(&analysis->requests, attempt, &requested);
	if (requested && !error)
		return NULL;
	if (!error)
		error = make_report(&report, begin_ns);
	if (error && ss_error_code(error) == SS_ERROR_NO_MEMORY)
		return take_ptr(error);
	if (error)
		ss_failure_print(error);
	else
		ss_sandbox_set_value(attempt, report.missing ? SS_STATUS_PARTIAL :
							       SS_STATUS_WHOLE);
	return NULL;
}

/* In the caller ------------------------------------------------------------- */

static void answer(void *data, const void *bytes, size_t size)
{
	struct ss_report_analysis *analysis = data;

	ss_file_requests_answer(&analysis->requests, bytes, size);
}

/* A profile grows with its recordings: allow half of the memory of the machine. */
static uint64_t more_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES);
	long page_size = sysconf(_SC_PAGESIZE);

	return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size / 2 : 0;
}

/* A small recording can stand for results of any size: each format writes a stack again and
   again, and some write each sample. */
static uint64_t max_output(const struct ss_report_analysis *analysis)
{
	uint64_t max = OUTPUT_MIN;

	for (size_t i = 0; i < analysis->files.count; i++) {
		struct stat status;
		if (fstat(analysis->files.items[i].fd, &status) == 0)
			max += OUTPUT_PER_BYTE *
			       SS_MIN((uint64_t)status.st_size, OUTPUT_MAX);
	}
	return SS_MIN(max, OUTPUT_MAX);
}

struct ss_error *ss_report_analysis_run(struct ss_report_analysis *analysis, int *ret)
{
	const struct ss_report_arguments *arguments = analysis->arguments;
	const struct ss_session_options session = {
		.size = sizeof(session),
		.debug_dir = arguments->symbols.debug_dir,
		.sysroot = arguments->symbols.sysroot,
		.find_file = arguments->symbols.debuginfod ? ss_file_requests_find : NULL,
		.find_data = &analysis->requests,
		.open_file = ss_file_requests_open,
		.open_data = &analysis->requests,
	};
	const struct ss_analysis sandboxed = {
		.options = {
			.session = &session,
			.timeout_ms = TIMEOUT_MS,
			.more_memory = more_memory(),
			.max_output = max_output(analysis),
			.first_level = arguments->symbols.raw ? SS_SANDBOX_RAW :
							SS_SANDBOX_NAMES,
			.last_level = SS_SANDBOX_RAW,
			/* Module indexes are those of one recording. */
			.keep_modules = analysis->files.count > 1,
			.max_requests = SS_FILE_REQUEST_ROUNDS,
			.answer = answer,
		},
		.work = work,
		.data = analysis,
		.binary = arguments->common.format->binary,
		.color = ss_options_want_color(&arguments->common),
		.verbose = arguments->common.verbose,
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);

	/* Created only now, so that an interrupted analysis leaves no file. */
	if (!error && !analysis->output && result->value < SS_STATUS_NOTHING)
		error = ss_output_open(arguments->common.output, 0, &output);
	if (!error)
		error = ss_analysis_copy(&sandboxed, result,
					 analysis->output ? analysis->output : output);
	if (!error)
		*ret = (int)SS_MIN(result->value, (uint64_t)SS_STATUS_NOTHING);
	return error;
}
