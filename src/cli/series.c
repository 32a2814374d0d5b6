#include "cli/interpret.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "cli/failure.h"
#include "cli/process.h"
#include "cli/report.h"
#include "cli/command.h"
#include "interpret/interpret.h"

enum { COUNT_MAX = 10000 };

/* Options ----------------------------------------------------------------- */

static const struct ss_option table[] = {
	{ .doc = "Several snapshots:", .group = 5 },
	{ "interval", 'i', "TIME",
	  "Take a snapshot every TIME, such as 1s or 200ms, and merge them (default with "
	  "--count: 1s)",
	  0, SS_SETS_DURATION(struct ss_series_options, period_ns) },
	{ "count", 'c', "N",
	  "Take N snapshots and merge them (default with --interval: until Ctrl-C, or "
	  "the end of the process)",
	  0, SS_SETS_NUMBER(struct ss_series_options, count, 1, COUNT_MAX) },
	{ "each", 0, NULL, "Print each snapshot separately", 0,
	  SS_SETS_FLAG(struct ss_series_options, each) },
	{},
};

static void end_options(void *input)
{
	struct ss_series_options *series = input;

	if (series->count && !series->period_ns)
		series->period_ns = SS_NS_PER_SECOND;
	if (series->period_ns && !series->each)
		series->common->input = SS_FORMAT_SERIES;
}

const struct ss_option_group ss_series_group = { .options = table, .end = end_options };

/* Waiting ----------------------------------------------------------------- */

/* They end a series: they are noticed between two captures, and while the functions of one are found. */
static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

/* Waits until that time. Returns whether a signal has arrived. */
static bool wait_until(const sigset_t *set, uint64_t time_ns)
{
	for (;;) {
		uint64_t now = ss_now_ns();
		uint64_t left = time_ns > now ? time_ns - now : 0;
		const struct timespec ts = { .tv_sec = (time_t)(left / SS_NS_PER_SECOND),
					     .tv_nsec = (long)(left % SS_NS_PER_SECOND) };
		if (sigtimedwait(set, NULL, &ts) > 0)
			return true;
		if (errno == EAGAIN || (errno != EINTR && left == 0))
			return false;
	}
}

/* Capturing --------------------------------------------------------------- */

struct collection {
	const struct ss_series_job *series;
	struct ss_reading reading;
	struct ss_selection_run run;
	struct ss_interpret_options options;
	struct ss_process_source *source; /* NULL: nothing was captured */
	sigset_t signals;		  /* that end it */
	size_t empty;	       /* captures without a thread that is selected: dropped */
	uint64_t first_cpu_ns; /* of the first capture */
	uint64_t later_cpu_ns; /* of all others */
};

static void collection_deinit(struct collection *collection)
{
	ss_process_source_free(collection->source);
	ss_reading_deinit(&collection->reading);
}

static size_t count_captures(const struct collection *collection)
{
	return collection->source ? ss_process_source_all(collection->source)->count : 0;
}

static bool is_full(const struct collection *collection)
{
	const struct ss_options *options = collection->series->options;
	uint64_t max = ss_options_max_total(options);
	size_t count = count_captures(collection);
	uint64_t bytes = count ? ss_process_source_size(collection->source) : 0;

	if (count < COUNT_MAX && bytes < max)
		return false;
	ss_failure_warn("the series ends after %zu snapshots, which take %" PRIu64
			" MiB of memory (--max-total)",
			count, bytes >> 20);
	return true;
}

/* The series ends with an error: returns it, unless there is something to print. */
static struct ss_error *end(const struct collection *collection, struct ss_error *error)
{
	const size_t count = count_captures(collection);
	_cleanup_error_ struct ss_error *owned = error;
	bool interrupted = ss_error_code(error) == SS_ERROR_INTERRUPTED;

	if (count == 0 && interrupted)
		return ss_error_new(SS_ERROR_INTERRUPTED,
				    "interrupted before the first snapshot was complete");
	if (count == 0)
		return take_ptr(owned);
	if (!interrupted)
		ss_failure_warn("after %zu snapshots: %s", count,
				ss_error_message(error));
	return NULL;
}

/* Adds a capture, unless no thread is selected. */
static struct ss_error *capture(struct collection *collection)
{
	bool first = !collection->source;
	uint64_t before_ns = ss_cpu_time_ns();

	collection->run = *collection->series->run;
	struct ss_error *error =
		first ? ss_reading_begin_series(&collection->reading, &collection->run,
						&collection->options,
						&collection->source) :
			ss_process_source_take(collection->source, &collection->options);
	if (error && ss_selection_run_is_empty(&collection->run)) {
		ss_error_free(error);
		collection->empty++;
		return NULL;
	}
	*(first ? &collection->first_cpu_ns : &collection->later_cpu_ns) +=
		ss_cpu_time_ns() - before_ns;
	return error;
}

/* Snapshots are due at fixed times. Those that are missed are not made up for. */
static struct ss_error *collect(struct collection *collection)
{
	const struct ss_series_options *options = collection->series->series;
	const sigset_t *set = &collection->signals;
	sigset_t before;
	uint64_t due_ns = ss_now_ns();
	struct ss_error *error = NULL;

	ss_signals_block(signals, SS_ARRAY_SIZE(signals), &collection->signals, &before);
	for (size_t taken = 1;; taken++) {
		error = capture(collection);
		if (error || taken == options->count || is_full(collection))
			break;
		uint64_t now = ss_now_ns();
		due_ns += options->period_ns;
		if (due_ns < now)
			due_ns = now;
		if (wait_until(set, due_ns))
			break;
	}
	(void)wait_until(set, 0); /* a signal that came too late: the end is near */
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return error ? end(collection, error) : NULL;
}

/* Writing ------------------------------------------------------------------- */

/* Formats of profiles get the series as a recording. */
static bool is_recorded(const struct ss_series_job *series)
{
	return !series->series->each && !series->options->common.format->write_snapshots;
}

static void print_times(const struct collection *collection, uint64_t interpret_ns)
{
	size_t later = count_captures(collection) - 1;

	ss_failure_warn(
		"CPU time: %.2f ms for the first capture, %.2f ms for each later one; "
		"%.2f ms for their interpretation",
		(double)collection->first_cpu_ns / 1e6,
		later ? (double)collection->later_cpu_ns / 1e6 / (double)later : 0,
		(double)interpret_ns / 1e6);
}

static struct ss_error *nothing(const struct collection *collection)
{
	pid_t pid = collection->run.argument->pid;

	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID,
			     "the selection matched no thread of process %d in %zu "
			     "snapshots",
			     pid, collection->empty),
		"stacksnap %d shows all threads", pid);
}

static struct ss_error *write_all(const struct collection *collection,
				  const struct ss_interpretation *result, FILE *out)
{
	const struct ss_series_job *series = collection->series;
	const struct ss_format *format = series->options->common.format;
	const struct ss_format_options options =
		ss_reading_format_options(&collection->reading, result);
	const struct ss_snapshots snapshots = {
		.items = (const struct ss_snapshot *const *)result->snapshots,
		.count = result->count,
		.period_ns = series->series->period_ns,
	};
	struct ss_error *error = NULL;

	if (!series->series->each)
		return format->write_snapshots(&snapshots, &options, out);
	for (size_t i = 0; i < result->count && !error; i++) {
		if (i > 0 && format->separator)
			(void)fputs(format->separator, out);
		error = format->write_snapshot(result->snapshots[i], &options, out);
	}
	return error;
}

/* Converts the recording that was written. It is opened anew because the next confined
   process keeps only files that are open for reading. */
static struct ss_error *convert(const struct ss_series_job *series, int recording,
				bool *missing)
{
	_cleanup_(ss_report_arguments_deinit) struct ss_report_arguments arguments;
	int status = 0;

	ss_report_arguments_init(&arguments);
	arguments.common = series->options->common;
	arguments.labels.batch = series->options->common.rows.batch;
	arguments.symbols = series->options->symbols;
	struct ss_report_analysis report = {
		.arguments = &arguments,
		.requests.debuginfod = series->debuginfod,
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

static struct ss_error *show(struct collection *collection, bool *ret)
{
	struct ss_reading *reading = &collection->reading;
	const struct ss_series_job *series = collection->series;
	struct ss_source *source = ss_process_source_all(collection->source);
	struct ss_interpret_options options = collection->options;
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	FILE *out = NULL;

	options.more_memory *= source->count;
	options.tasks = options.goroutines = false; /* they were read */
	options.stop = NULL;			    /* what there is, is shown */
	struct ss_error *error = ss_reading_interpret(reading, source, &options, &result);
	if (!error && options.write) {
		*ret = result->sandbox->value != 0;
		return is_recorded(series) ?
			       convert(series, result->sandbox->output, ret) :
			       ss_reading_copy(reading, result);
	}
	if (!error)
		error = ss_reading_open(&out);
	if (error)
		return error;
	error = ss_reading_close(reading, out, write_all(collection, result, out));
	if (!error)
		*ret = ss_reading_report(
			reading, (const struct ss_snapshot *const *)result->snapshots,
			result->count, result->problem, NULL);
	return error;
}

struct ss_error *ss_series_run(const struct ss_series_job *series, bool *ret)
{
	const struct ss_options *options = series->options;
	_cleanup_(collection_deinit) struct collection collection = {
		.series = series,
		.reading = {
			.options = options,
			.run = series->run,
			.output = series->output,
			.requests.debuginfod = series->debuginfod,
			.color = ss_options_want_color(&options->common),
			.until = &collection.signals,
			.period_ns = series->series->period_ns,
			.format = is_recorded(series) ? &ss_format_recording : NULL,
		},
	};
	struct ss_error *error;

	ss_reading_configure(&collection.reading, &collection.options);
	/* Reading them takes long: only if they were asked for. */
	collection.options.tasks = options->tasks_given && options->tasks > 0;
	error = collect(&collection);
	if (error)
		return error;
	if (!collection.source)
		return nothing(&collection);
	if (collection.empty)
		ss_failure_warn("%zu snapshots without a selected thread are not counted",
				collection.empty);
	ss_process_source_end_series(collection.source);
	uint64_t before_ns = ss_cpu_time_ns();
	error = show(&collection, ret);
	if (!error && options->common.verbose)
		print_times(&collection, ss_cpu_time_ns() - before_ns);
	return error;
}
