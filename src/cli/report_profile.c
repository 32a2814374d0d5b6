#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/intern.h"
#include "base/search.h"
#include "cli/interpret.h"
#include "cli/failure.h"
#include "cli/output.h"
#include "report/profile_load.h"
#include "report/profile_waits.h"
#include "data/recording.h"
#include "diagnose/wait_table.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"
#include "stacksnap/record.h"

/* Long recordings take minutes; this limit ends an analysis that hangs. */
enum { TIMEOUT_MS = 3600 * 1000 };

/* Recordings without samples that are named. */
enum { EMPTY_MAX = 20 };

/* Limits of the result, in bytes. It is kept in memory, like the profile. */
#define OUTPUT_MIN ((uint64_t)192 << 20)
#define OUTPUT_PER_BYTE 128
#define OUTPUT_MAX ((uint64_t)1 << 30)

void ss_report_analysis_deinit(struct ss_report_analysis *analysis)
{
	ss_report_files_deinit(&analysis->files);
	ss_file_requests_deinit(&analysis->requests);
}

/* In the sandbox ------------------------------------------------------------ */

/* One of the recordings in the files. */
struct part {
	const struct ss_report_file *file;
	struct ss_recording_part place;
	char *name;    /* owned */
	size_t number; /* in the order of the arguments */
};

/* One attempt. Recordings are open one at a time: there may be thousands. */
struct report {
	struct ss_report_analysis *analysis;
	const struct ss_report_arguments *arguments;
	const struct ss_sandbox_attempt *attempt;
	SS_VECTOR(struct part) parts;
	struct ss_recording *recording; /* the last one */
	size_t recordings;		/* how many could be read */
	uint64_t samples;		/* in all of them */
	/* Why recordings without samples have none; owned texts of the first ones */
	SS_VECTOR(char *) empty;
	size_t idle; /* recordings without samples because nothing was on a CPU */
	struct ss_wait_table *waits;
	struct ss_idtable wait_functions; /* texts that are in the table */
	struct ss_profile *profile;
	bool raw;
	bool missing; /* a recording or a symbol file could not be read */
};

static void report_deinit(struct report *report)
{
	for (size_t i = 0; i < report->parts.count; i++)
		free(report->parts.items[i].name);
	ss_vector_free(&report->parts);
	ss_recording_close(report->recording);
	for (size_t i = 0; i < report->empty.count; i++)
		free(report->empty.items[i]);
	ss_vector_free(&report->empty);
	ss_wait_table_free(report->waits);
	ss_idtable_deinit(&report->wait_functions);
	ss_profile_free(report->profile);
}

/* Recordings in a file follow one another. */
static struct ss_error *add_part(struct report *report, const struct ss_report_file *file,
				 int fd, uint64_t offset, size_t index)
{
	_cleanup_free_ char *name = NULL;
	struct part part = { .file = file, .number = report->parts.count };
	struct ss_error *error = ss_recording_find_part(fd, offset, &part.place);

	if (error)
		return error;
	part.place.size =
		SS_MIN(part.place.size, file->offset + file->size - part.place.offset);
	if (index == 0)
		name = strdup(file->path);
	else if (asprintf(&name, "%s (%zu)", file->path, index + 1) < 0)
		name = NULL;
	struct part *slot = name ? ss_vector_push(&report->parts) : NULL;
	if (!slot)
		return ss_error_no_memory();
	part.name = take_ptr(name);
	*slot = part;
	return NULL;
}

static struct ss_error *find_parts(struct report *report,
				   const struct ss_report_file *file)
{
	_cleanup_close_ int fd =
		ss_report_files_duplicate(&report->analysis->files, file);
	int errnum = errno;
	uint64_t at = file->offset;
	size_t index = 0;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot read '%s'", file->path);
	do {
		struct ss_error *error = add_part(report, file, fd, at, index++);
		if (error)
			return error;
		at += report->parts.items[report->parts.count - 1].place.size;
	} while (at < file->offset + file->size);
	return NULL;
}

static int compare_begin(const void *a, const void *b)
{
	const struct part *x = a;
	const struct part *y = b;

	return SS_COMPARE(x->place.begin_ns, y->place.begin_ns) ?:
		       SS_COMPARE(x->number, y->number);
}

static struct ss_error *find_all_parts(struct report *report)
{
	const struct ss_report_files *files = &report->analysis->files;

	for (size_t i = 0; i < files->items.count; i++) {
		struct ss_error *error = find_parts(report, &files->items.items[i]);
		if (error)
			return error;
	}
	if (report->parts.count)
		qsort(report->parts.items, report->parts.count,
		      sizeof(*report->parts.items), compare_begin);
	return NULL;
}

static uint64_t first_begin(const struct report *report)
{
	for (size_t i = 0; i < report->parts.count; i++) {
		if (report->parts.items[i].place.begin_ns)
			return report->parts.items[i].place.begin_ns;
	}
	return 0;
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

	return ss_any(report->arguments->modules.count, i,
		      regexec(&report->arguments->modules.items[i], path, 0, NULL, 0) ==
			      0);
}

/* Whether only what was on a CPU was recorded, and nothing was at any tick: that is an answer. */
static bool is_idle(const struct ss_recording_info *info)
{
	return !info->samples && info->ticks &&
	       (info->scope == SS_SCOPE_CPUS || info->scope == SS_SCOPE_RUNNING);
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

	if (info->scope == SS_SCOPE_EVENTS)
		return "no traced function was called";
	if (info->ticks && info->end != SS_RECORDING_SNAPSHOT)
		return "the selection matched no thread at any tick";
	return (size_t)info->end < SS_ARRAY_SIZE(reasons) && reasons[info->end] ?
		       reasons[info->end] :
		       "it is truncated before the first sample";
}

static bool add_empty(struct report *report, const char *name, const char *why)
{
	_cleanup_free_ char *text = NULL;
	char **slot = asprintf(&text, "'%s' has no samples: %s", name, why) < 0 ?
			      NULL :
			      ss_vector_push(&report->empty);

	if (slot)
		*slot = take_ptr(text);
	return slot;
}

static struct ss_error *open_part(struct report *report, const struct part *part)
{
	_cleanup_close_ int fd =
		ss_report_files_duplicate(&report->analysis->files, part->file);
	int errnum = errno;

	ss_recording_close(take_ptr(report->recording));
	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot read '%s'", part->name);
	_cleanup_error_ struct ss_error *error =
		ss_recording_open_part(take_fd(fd), &part->place, &report->recording);
	return error ? ss_error_new(ss_error_code(error), "'%s': %s", part->name,
				    ss_error_message(error)) :
		       NULL;
}

/* Those of the recording. Many have the same ones. */
static struct ss_error *add_wait_functions(struct report *report, const struct part *part)
{
	const char *text = ss_recording_info(report->recording)->wait_functions;
	bool added = false;

	if (!text)
		return NULL;
	if (ss_idtable_add(&report->wait_functions, text, strlen(text), &added) ==
	    SS_ID_NONE)
		return ss_error_no_memory();
	if (!added)
		return NULL;
	_cleanup_error_ struct ss_error *invalid =
		ss_wait_table_add(report->waits, part->name, text, strlen(text));
	if (invalid)
		ss_failure_warn("%s", ss_error_message(invalid));
	return NULL;
}

static bool is_requesting(const struct report *report)
{
	return report->attempt->may_request &&
	       report->analysis->requests.pending.count > 0;
}

/* Loads the recording that is open. After a request for files everything is read again. */
static struct ss_error *load_part(struct report *report, const struct part *part,
				  const struct ss_load_options *options)
{
	const struct ss_report_arguments *arguments = report->arguments;
	const struct ss_recording_info *info = ss_recording_info(report->recording);
	struct ss_error *error = NULL;

	report->recordings++;
	report->samples += info->samples;
	const bool idle = is_idle(info);
	report->idle += idle;
	if (!info->samples && !idle && report->empty.count < EMPTY_MAX &&
	    !add_empty(report, part->name, why_empty(info)))
		return ss_error_no_memory();
	ss_sandbox_enter(report->attempt, SS_SANDBOX_SYMBOLIZE);
	if (!report->raw)
		error = ss_recording_symbolize(report->recording,
					       report->attempt->session,
					       arguments->symbols.flags);
	if (error || is_requesting(report))
		return error;
	ss_sandbox_enter(report->attempt, SS_SANDBOX_OUTPUT);
	error = add_wait_functions(report, part);
	return error ? error :
		       ss_load_recording(report->profile, report->recording, part->name,
					 options);
}

static struct ss_error *load_parts(struct report *report)
{
	const struct ss_report_arguments *arguments = report->arguments;
	uint64_t begin = first_begin(report);
	struct ss_load_options options = {
		.size = sizeof(options),
		.by_host = arguments->by_host,
		.by_label = arguments->by_label,
		.from_ns = ss_time_argument_resolve(&arguments->from, begin),
		.to_ns = ss_time_argument_resolve(&arguments->to, begin),
		.states = arguments->selection.states,
		.selects_thread = selects_thread,
		.selects_module = arguments->modules.count ? selects_module : NULL,
		.data = report,
		.raw = report->raw,
		.native = arguments->native,
		.unfolded = arguments->diff || arguments->common.format->unfolded,
		.unsampled = true,
	};
	struct ss_error *error = NULL;

	report->profile = ss_profile_new();
	if (!report->profile)
		return ss_error_no_memory();
	report->profile->start_ns = SS_MAX(begin, options.from_ns);
	error = ss_wait_table_new(&report->waits);
	for (size_t i = 0; i < report->parts.count && !error; i++) {
		const struct part *part = &report->parts.items[i];
		_cleanup_error_ struct ss_error *invalid = open_part(report, part);
		if (invalid && ss_error_code(invalid) == SS_ERROR_NO_MEMORY)
			return take_ptr(invalid);
		options.set = arguments->diff ? part->file->set : 0;
		if (!invalid) {
			error = load_part(report, part, &options);
			continue;
		}
		report->missing = true;
		ss_failure_print(invalid);
	}
	ss_profile_weigh(report->profile, arguments->by_time);
	return error;
}

/* The functions of the recordings, and of this machine and the options, which take
   precedence. */
static struct ss_error *find_locks(const struct report *report)
{
	_cleanup_free_ char *own = NULL;
	struct ss_error *error = NULL;

	if (report->arguments->waits)
		error = ss_wait_table_added(report->arguments->waits, &own);
	if (!error && own)
		error = ss_wait_table_add(report->waits, "own functions", own,
					  strlen(own));
	if (error)
		return error;
	return ss_profile_find_locks(report->profile, report->waits) ?
		       NULL :
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
		const struct ss_module *module = &profile->modules.items[i];
		if (!used[i] || !module->problem)
			continue;
		if (!ss_profile_note(profile, "%s [%s]: %s", module->path,
				     module->build_id ? module->build_id : "no build-id",
				     module->problem))
			return ss_error_no_memory();
	}
	return NULL;
}

/* For failures of earlier attempts: of the only recording. */
static const char *module_path(const void *data, size_t index)
{
	const struct report *report = data;

	return report->recording && index < ss_recording_module_count(report->recording) ?
		       ss_recording_module(report->recording, index)->module->path :
		       NULL;
}

static struct ss_error *note_failures(struct report *report)
{
	_cleanup_free_ char *problem = ss_interpret_problem(
		report->attempt, report->arguments->symbols.raw, module_path, report);

	return !problem || ss_profile_note(report->profile, "%s", problem) ?
		       NULL :
		       ss_error_no_memory();
}

static struct ss_error *nothing_recorded(const struct report *report)
{
	if (report->recordings == 1)
		return ss_error_new(SS_ERROR_INVALID, "%s", report->empty.items[0]);
	for (size_t i = 0; i < report->empty.count; i++)
		ss_failure_warn("%s", report->empty.items[i]);
	return ss_error_new(SS_ERROR_INVALID, "none of the %zu recordings has samples",
			    report->recordings);
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

static bool has_durations(const struct ss_profile *profile)
{
	return ss_any(profile->events.count, i, profile->events.items[i].duration_ns);
}

/* Each side of --diff must have samples: otherwise everything would be new or gone. */
static struct ss_error *check_sets(const struct report *report)
{
	const struct ss_profile *profile = report->profile;
	bool has_samples[2] = {};

	for (size_t i = 0; i < profile->threads.count; i++) {
		const struct ss_profile_thread *thread = &profile->threads.items[i];
		unsigned set = ss_profile_recording_of(profile, thread)->set;
		has_samples[set != 0] |= thread->runs.count > 0;
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(has_samples); i++) {
		if (!has_samples[i])
			return ss_error_new(SS_ERROR_INVALID,
					    "'%s' has no samples to compare",
					    report->arguments->files.items[i]);
	}
	return NULL;
}

static struct ss_error *check_selection(const struct report *report)
{
	if (report->arguments->by_time && !has_durations(report->profile))
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "--weight=time: no recording has scopes that ended"),
			"record them with stacksnap trace --scope -o FILE");
	if (report->profile->samples)
		return report->arguments->diff ? check_sets(report) : NULL;
	if (!report->samples && report->idle && report->empty.count == 0) {
		ss_failure_warn("no recorded thread was on a CPU at any tick");
		return report->arguments->diff ? check_sets(report) : NULL;
	}
	for (size_t i = 0; i < report->profile->notes.count; i++)
		ss_failure_warn("%s", report->profile->notes.items[i]);
	return report->samples || report->empty.count == 0 ?
		       nothing_selected(report->arguments) :
		       nothing_recorded(report);
}

static struct ss_error *write_report(struct report *report)
{
	const struct ss_report_arguments *arguments = report->arguments;
	struct ss_row_source source;
	ss_row_source_init(&source, &arguments->labels);
	const struct ss_format_options options = {
		.size = sizeof(options),
		.color = ss_options_want_color(&arguments->common),
		.verbose = arguments->common.verbose,
		.raw = report->raw,
		.threshold = arguments->threshold_percent,
		.rows = arguments->rows,
		.row_options = &source.options,
	};
	const struct ss_format *format = arguments->common.format;
	FILE *out = NULL;
	struct ss_error *error = ss_stream_open(report->attempt->output, &out);

	if (!error)
		error = arguments->diff ?
				format->write_profile_diff(report->profile, &options,
							   out) :
				format->write_profile(report->profile, &options, out);
	ss_row_source_deinit(&source);
	return out ? ss_stream_close(out, error) : error;
}

/* Names rest on less than a build-id: not a failure. */
static void print_by_file(const struct report *report)
{
	const struct ss_profile *profile = report->profile;

	for (size_t i = 0; i < profile->modules.count; i++) {
		const struct ss_module *module = &profile->modules.items[i];
		if (module->by_file && !report->raw)
			ss_failure_warn("%s: no build-id: names rely on the size, "
					"headers and symbols of the file",
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
	uint64_t loaded_ns = ss_now_ns();
	struct ss_error *error = find_locks(report);

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
		.missing = analysis->files.missing,
	};
	uint64_t begin_ns = ss_now_ns();
	bool requested = false;

	ss_sandbox_set_value(attempt, SS_STATUS_NOTHING);
	_cleanup_error_ struct ss_error *error = find_all_parts(&report);
	if (!error)
		error = load_parts(&report);
	if (!error && report.recordings == 0)
		return NULL;
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

	for (size_t i = 0; i < analysis->files.items.count; i++)
		max += OUTPUT_PER_BYTE *
		       SS_MIN(analysis->files.items.items[i].size, OUTPUT_MAX);
	return SS_MIN(max, OUTPUT_MAX);
}

struct ss_error *ss_report_analysis_run(struct ss_report_analysis *analysis, int *ret)
{
	const struct ss_report_arguments *arguments = analysis->arguments;
	struct ss_interpret_options options =
		ss_work_options(&arguments->symbols, &analysis->requests, analysis);
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	_cleanup_(ss_output_cleanup) struct ss_output *output = NULL;

	options.timeout_ms = TIMEOUT_MS;
	options.more_memory = more_memory();
	options.max_output = max_output(analysis);
	/* Module indexes are those of one recording. */
	options.keep_modules = analysis->files.items.count > 1;
	struct ss_error *error = ss_work_run(&options, work, &result);

	/* Created only now, so that an interrupted analysis leaves no file. */
	if (!error && !analysis->output && result->value < SS_STATUS_NOTHING)
		error = ss_output_open(arguments->common.output, 0, &output);
	if (!error)
		error = ss_work_copy(result, &arguments->common,
				     ss_options_want_color(&arguments->common),
				     analysis->output ? analysis->output : output);
	if (!error)
		*ret = (int)SS_MIN(result->value, (uint64_t)SS_STATUS_NOTHING);
	return error;
}
