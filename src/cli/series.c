#include "cli/series.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/series_analysis.h"
#include "cli/series_capture.h"
#include "cli/usage.h"

enum { COUNT_MAX = 10000 };

#define TOTAL_DEFAULT ((uint64_t)256 << 20)

/* Options ----------------------------------------------------------------- */

enum key { KEY_INTERVAL = 'i', KEY_COUNT = 'c', KEY_EACH = 0x640 };

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Several snapshots:", 5 },
	{ "interval", KEY_INTERVAL, "TIME", 0,
	  "Take a snapshot every TIME, such as 1s or 200ms, and merge them (default with "
	  "--count: 1s)",
	  0 },
	{ "count", KEY_COUNT, "N", 0,
	  "Take N snapshots and merge them (default with --interval: until Ctrl-C, or "
	  "the end of the process)",
	  0 },
	{ "each", KEY_EACH, NULL, 0, "Print each snapshot separately", 0 },
	{},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ss_series_options *series = state->input;

	switch (key) {
	case KEY_INTERVAL:
		series->period_ns = ss_options_parse_duration(state, "interval", arg);
		break;
	case KEY_COUNT:
		series->count =
			ss_options_parse_number(state, "count", arg, 1, COUNT_MAX);
		if (!series->period_ns)
			series->period_ns = SS_NS_PER_SECOND;
		break;
	case KEY_EACH:
		series->each = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	series->common->input = series->period_ns && !series->each ? SS_FORMAT_SERIES :
								     SS_FORMAT_SNAPSHOT;
	return 0;
}

const struct argp ss_series_argp = { .options = table, .parser = parse };

/* Waiting ----------------------------------------------------------------- */

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

/* Blocks the signals that end a series: they are noticed between two captures, and while the
   functions of one are found. Those that are ignored stay so. */
static void block_signals(sigset_t *ret, sigset_t *before)
{
	/* None of these calls can fail: the signals are valid. */
	(void)sigemptyset(ret);
	for (size_t i = 0; i < SS_ARRAY_SIZE(signals); i++) {
		struct sigaction action;
		if (sigaction(signals[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			(void)sigaddset(ret, signals[i]);
	}
	(void)sigprocmask(SIG_BLOCK, ret, before);
}

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
	const struct ss_series *series;
	struct ss_series_capture captured;
	sigset_t signals; /* that end it */
};

static void collection_deinit(struct collection *collection)
{
	ss_series_capture_deinit(&collection->captured);
}

static bool is_full(const struct collection *collection)
{
	const struct ss_options *options = collection->captured.options;
	uint64_t max = options->max_total ? options->max_total : TOTAL_DEFAULT;

	if (collection->captured.captures.count < COUNT_MAX &&
	    collection->captured.bytes < max)
		return false;
	ss_failure_warn("the series ends after %zu snapshots, which take %" PRIu64
			" MiB of memory (--max-total)",
			collection->captured.captures.count,
			collection->captured.bytes >> 20);
	return true;
}

/* The series ends with an error: returns it, unless there is something to print. */
static struct ss_error *end(const struct collection *collection, struct ss_error *error)
{
	const size_t count = collection->captured.captures.count;
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

/* Snapshots are due at fixed times. Those that are missed are not made up for. */
static struct ss_error *collect(struct collection *collection)
{
	const struct ss_series_options *options = collection->series->series;
	const sigset_t *set = &collection->signals;
	sigset_t before;
	uint64_t due_ns = ss_now_ns();
	struct ss_error *error = NULL;

	block_signals(&collection->signals, &before);
	collection->captured.end_signals = set;
	for (size_t taken = 1;; taken++) {
		error = ss_series_capture_take(&collection->captured);
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

static void print_times(const struct collection *collection,
			const struct ss_series_times *times)
{
	size_t later = collection->captured.captures.count - 1;
	double first_ms =
		(double)(collection->captured.first_cpu_ns + times->first_ns) / 1e6;
	double later_ms =
		later ? (double)(collection->captured.later_cpu_ns + times->later_ns) /
				1e6 / (double)later :
			0;

	ss_failure_warn(
		"CPU time: %.2f ms for the first snapshot (capture %.2f), %.2f "
		"ms for each later one (capture %.2f)",
		first_ms, (double)collection->captured.first_cpu_ns / 1e6, later_ms,
		later ? (double)collection->captured.later_cpu_ns / 1e6 / (double)later :
			0);
}

static struct ss_error *nothing(const struct collection *collection)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID,
			     "the selection matched no thread of process %d in %zu "
			     "snapshots",
			     collection->captured.run.argument->pid,
			     collection->captured.empty),
		"stacksnap %d shows all threads", collection->captured.run.argument->pid);
}

struct ss_error *ss_series_run(const struct ss_series *series, bool *ret)
{
	__attribute__((cleanup(collection_deinit))) struct collection collection = {
		.series = series,
		.captured = { .options = series->options,
			      .selection = series->run,
			      /* Reading them takes long: only if they were asked for. */
			      .tasks = series->options->tasks_given &&
				       series->options->tasks > 0 },
	};
	struct ss_series_times times = {};
	struct ss_error *error = collect(&collection);

	if (error)
		return error;
	if (collection.captured.captures.count == 0)
		return nothing(&collection);
	if (collection.captured.empty)
		ss_failure_warn("%zu snapshots are not counted: they have no selected "
				"thread",
				collection.captured.empty);
	ss_capture_add_related(collection.captured.captures
				       .items[collection.captured.captures.count - 1],
			       collection.captured.job.target);
	/* Its files would have to be closed in each sandboxed child, too. */
	ss_target_close(take_ptr(collection.captured.job.target));
	struct ss_series_analysis analysis = {
		.series = series,
		.captures = collection.captured.captures.items,
		.count = collection.captured.captures.count,
		.owner = collection.captured.job.analysis.owner,
		.requests.debuginfod = series->debuginfod,
	};
	error = ss_series_analysis_run(&analysis, ret, &times);
	ss_series_analysis_deinit(&analysis);
	if (!error && series->options->common.verbose)
		print_times(&collection, &times);
	return error;
}
