#include "cli/series_analysis.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/report_analysis.h"

/* An attempt to analyze all captures. */
struct attempt {
	const struct ss_series_analysis *analysis;
	const struct ss_sandbox_attempt *sandbox;
	struct ss_snapshot **snapshots; /* owned */
	size_t count;
};

static void attempt_deinit(struct attempt *attempt)
{
	for (size_t i = 0; i < attempt->count; i++)
		ss_snapshot_free(attempt->snapshots[i]);
	free(attempt->snapshots);
}

static const struct ss_options *options_of(const struct attempt *attempt)
{
	return attempt->analysis->series->options;
}

/* Formats of profiles get the series as a recording. */
static bool is_recorded(const struct ss_series *series)
{
	return !series->series->each && !series->options->common.format->write_series;
}

static bool needs_names(const struct ss_series *series)
{
	return !is_recorded(series) && !series->options->common.format->unsymbolized;
}

/* In memory that is shared with the sandbox: what it writes there is only printed. */
struct work_data {
	struct ss_series_analysis *analysis;
	volatile struct ss_series_times *times; /* or NULL */
};

/* In the sandbox ------------------------------------------------------------ */

static struct ss_error *unwind(struct attempt *attempt)
{
	const struct ss_sandbox_attempt *sandbox = attempt->sandbox;
	struct ss_unwind_options options = {
		.size = sizeof(options),
		.max_frames = options_of(attempt)->common.max_frames,
		.native = options_of(attempt)->native ||
			  is_recorded(attempt->analysis->series),
		.no_runtimes = sandbox->level != SS_SANDBOX_NAMES,
	};

	ss_sandbox_enter(sandbox, SS_SANDBOX_UNWIND);
	if (sandbox->level == SS_SANDBOX_PLACES) {
		options.max_frames = 1;
		options.frames_reason = "it could not be unwound";
	}
	struct ss_error *error = ss_capture_unwind(
		attempt->analysis->captures[attempt->count], sandbox->session, &options,
		&attempt->snapshots[attempt->count]);
	attempt->count += !error;
	return error;
}

static struct ss_error *symbolize(const struct attempt *attempt,
				  struct ss_snapshot *snapshot)
{
	const struct ss_sandbox_attempt *sandbox = attempt->sandbox;
	bool names = needs_names(attempt->analysis->series);
	unsigned flags = names ? options_of(attempt)->symbols.flags :
				 SS_NO_SOURCE | SS_NO_INLINES;

	if (sandbox->level != SS_SANDBOX_NAMES)
		return NULL;
	ss_sandbox_enter(sandbox, SS_SANDBOX_SYMBOLIZE);
	if (!names)
		ss_snapshot_identify_files(snapshot, sandbox->session);
	if (!names && options_of(attempt)->no_waits)
		return NULL;
	return ss_snapshot_symbolize(snapshot, sandbox->session, flags);
}

static struct ss_error *interpret(struct attempt *attempt,
				  volatile struct ss_series_times *times)
{
	const struct ss_series_analysis *analysis = attempt->analysis;

	for (size_t i = 0; i < analysis->count; i++) {
		uint64_t begin_ns = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID);
		struct ss_error *error = unwind(attempt);
		if (!error)
			error = symbolize(attempt, attempt->snapshots[i]);
		bool last = i + 1 == analysis->count;
		if (!error)
			error = ss_analysis_diagnose(attempt->sandbox,
						     options_of(attempt),
						     last ? analysis->captures[i] : NULL,
						     attempt->snapshots[i]);
		if (error)
			return error;
		uint64_t spent_ns = ss_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
		if (times && i == 0) {
			times->first_ns = spent_ns;
			times->later_ns = 0;
		} else if (times) {
			times->later_ns += spent_ns;
		}
	}
	return NULL;
}

static struct ss_error *write_all(const struct attempt *attempt,
				  const struct ss_format_options *format_options,
				  FILE *out)
{
	const struct ss_series *series = attempt->analysis->series;
	const struct ss_format *format = series->options->common.format;
	const struct ss_snapshots snapshots = {
		.items = (const struct ss_snapshot *const *)attempt->snapshots,
		.count = attempt->count,
		.period_ns = series->series->period_ns,
	};
	struct ss_error *error = NULL;

	const bool each = series->series->each && !is_recorded(series);

	if (!each)
		error = (is_recorded(series) ? &ss_format_recording : format)
				->write_series(&snapshots, format_options, out);
	for (size_t i = 0; each && i < attempt->count && !error; i++) {
		if (i > 0 && format->separator)
			(void)fputs(format->separator, out);
		error = format->write_snapshot(attempt->snapshots[i], format_options,
					       out);
	}
	return error;
}

static struct ss_error *print(const struct attempt *attempt, const char *problem)
{
	const struct ss_series_analysis *analysis = attempt->analysis;
	const struct ss_options *options = options_of(attempt);
	const struct ss_sandbox_attempt *sandbox = attempt->sandbox;
	const struct ss_format *format = options->common.format;
	_cleanup_free_ char *advice =
		format == &ss_format_text ?
			ss_analysis_advice(sandbox,
					   attempt->snapshots[attempt->count - 1],
					   options, analysis->privileged) :
			NULL;
	_cleanup_free_ char *wait_functions = NULL;
	struct ss_error *error = ss_wait_table_added(options->waits, &wait_functions);
	const struct ss_format_options format_options = {
		.size = sizeof(format_options),
		.wait_functions = wait_functions,
		.raw = sandbox->level != SS_SANDBOX_NAMES,
		.no_group = options->no_group,
		.all = options->all || ss_selection_run_is_active(analysis->series->run),
		.verbose = options->common.verbose,
		.color = ss_options_want_color(&options->common),
		.goroutine_groups = options->goroutines,
		.task_groups = options->tasks,
		.max_stack = options->common.max_stack,
		.problem = problem,
		.advice = advice,
	};
	FILE *out = NULL;

	ss_sandbox_enter(sandbox, SS_SANDBOX_OUTPUT);
	if (!error)
		error = ss_analysis_open(sandbox, &out);
	if (error)
		return error;
	error = write_all(attempt, &format_options, out);
	/* cppcheck-suppress returnDanglingLifetime; the error does not refer to the options */
	return ss_analysis_close(out, error);
}

/* Writes to standard error what is missing in the last snapshot, and whether anything is in
   the others. Returns whether anything is. */
static bool report_missing(const struct attempt *attempt, const char *problem)
{
	const struct ss_options *options = options_of(attempt);
	const struct ss_snapshot *last = attempt->snapshots[attempt->count - 1];
	size_t missing = ss_selection_run_report(attempt->analysis->series->run, last);
	size_t incomplete = 0;

	for (size_t i = 0; i < attempt->count; i++)
		incomplete += ss_incomplete_count(attempt->snapshots[i]) > 0;
	if (problem)
		ss_failure_warn("%d: %s", ss_snapshot_process(last)->pid, problem);
	if (incomplete)
		ss_failure_warn("%d: %zu of %zu snapshots have incomplete stacks",
				ss_snapshot_process(last)->pid, incomplete,
				attempt->count);
	if (!options->symbols.raw && needs_names(attempt->analysis->series))
		ss_incomplete_print_modules(last);
	return missing + incomplete > 0 || problem;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *sandbox)
{
	struct work_data *given = data;
	const struct ss_series_analysis *analysis = given->analysis;
	__attribute__((cleanup(attempt_deinit))) struct attempt attempt = {
		.analysis = analysis,
		.sandbox = sandbox,
		.snapshots = calloc(analysis->count, sizeof(struct ss_snapshot *)),
	};
	bool requested = false;

	if (!attempt.snapshots)
		return ss_error_no_memory();
	struct ss_error *error = interpret(&attempt, given->times);
	if (!error)
		error = ss_file_requests_send(&analysis->requests, sandbox, &requested);
	if (error || requested)
		return error;
	_cleanup_free_ char *problem = ss_analysis_problem(
		sandbox, ss_analysis_snapshot_module,
		attempt.snapshots[attempt.count - 1], options_of(&attempt)->symbols.raw);
	error = print(&attempt, problem);
	if (!error)
		ss_sandbox_set_value(sandbox, report_missing(&attempt, problem));
	return error;
}

/* In the caller ------------------------------------------------------------- */

static void answer(void *data, const void *bytes, size_t size)
{
	struct work_data *work_data = data;

	ss_file_requests_answer(&work_data->analysis->requests, bytes, size);
}

/* Converts the recording that the sandbox has written. It is opened anew because the next
   sandbox keeps only files that are open for reading. */
static struct ss_error *convert(const struct ss_series_analysis *analysis, int recording,
				bool *missing)
{
	const struct ss_series *series = analysis->series;
	_cleanup_(ss_report_arguments_deinit) struct ss_report_arguments arguments;
	int status = 0;

	ss_report_arguments_init(&arguments);
	arguments.common = series->options->common;
	arguments.labels.batch = series->options->common.rows.batch;
	arguments.symbols = series->options->symbols;
	struct ss_report_analysis report = {
		.arguments = &arguments,
		.requests.debuginfod = analysis->requests.debuginfod,
		.output = series->output,
	};
	struct ss_error *error = ss_report_files_add(
		&report.files, ss_io_reopen(recording), "the snapshots");
	if (!error)
		error = ss_report_analysis_run(&report, &status);
	ss_report_analysis_deinit(&report);
	*missing = *missing || status != 0;
	return error;
}

struct ss_error *ss_series_analysis_run(struct ss_series_analysis *analysis, bool *ret,
					struct ss_series_times *ret_times)
{
	const struct ss_series *series = analysis->series;
	const struct ss_options *options = series->options;
	bool recorded = is_recorded(series);
	struct work_data data = { .analysis = analysis };
	struct ss_session_options session;
	struct ss_analysis sandboxed = {
		.work = work,
		.data = &data,
		.binary = options->common.format->binary,
		.color = ss_options_want_color(&options->common),
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;
	void *times = mmap(NULL, sizeof(*data.times), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	data.times = times == MAP_FAILED ? NULL : times;
	analysis->privileged = geteuid() == 0;
	ss_analysis_configure(&sandboxed, &session, options, &analysis->owner,
			      analysis->count, &analysis->requests);
	for (size_t i = 0; i < analysis->count; i++)
		ss_analysis_attach(options, &analysis->owner, analysis->captures[i]);
	sandboxed.options.first_level = options->symbols.raw ? SS_SANDBOX_RAW :
							       SS_SANDBOX_NAMES;
	sandboxed.options.answer = answer;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	if (data.times) {
		ret_times->first_ns = data.times->first_ns;
		ret_times->later_ns = data.times->later_ns;
		(void)munmap(times, sizeof(*data.times)); /* cannot fail */
	}
	if (error)
		return error;
	*ret = result->value != 0;
	error = ss_analysis_copy(&sandboxed, result, recorded ? NULL : series->output);
	return error || !recorded ? error : convert(analysis, result->output, ret);
}

void ss_series_analysis_deinit(struct ss_series_analysis *analysis)
{
	ss_file_requests_deinit(&analysis->requests);
}
