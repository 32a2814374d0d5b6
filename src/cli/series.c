#include "cli/series.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vector.h"
#include "cli/failure.h"
#include "cli/series_analysis.h"
#include "cli/snap_job.h"
#include "cli/usage.h"
#include "cli/watchdog.h"

enum { COUNT_MAX = 10000 };

#define TOTAL_DEFAULT ((uint64_t)256 << 20)

/* Options ----------------------------------------------------------------- */

enum key { KEY_INTERVAL = 'i', KEY_COUNT = 'c', KEY_EACH = 0x640 };

static const struct argp_option table[] = {
	{ NULL, 0, NULL, 0, "Several snapshots:", 3 },
	{ "interval", KEY_INTERVAL, "TIME", 0,
	  "Take a snapshot every TIME, such as 1s or 200ms, and merge them (default with "
	  "--count: 1s)",
	  0 },
	{ "count", KEY_COUNT, "N", 0,
	  "Take N snapshots and merge them (default with --interval: until Ctrl-C, or "
	  "the end of the process)",
	  0 },
	{ "each", KEY_EACH, NULL, 0, "Print the snapshots apart", 0 },
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

/* Blocks the signals that end a series: they are noticed between two captures. Those that
   are ignored stay so. */
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
	struct ss_selection_run run;
	struct ss_phases phases;
	struct ss_snap_job job; /* the first capture */
	SS_VECTOR(struct ss_capture *) captures;
	size_t empty;	       /* snapshots without a thread that is selected */
	uint64_t bytes;	       /* of the copies */
	uint64_t first_cpu_ns; /* of the first capture */
	uint64_t later_cpu_ns; /* of all others */
};

static void collection_deinit(struct collection *collection)
{
	for (size_t i = 0; i < collection->captures.count; i++)
		ss_capture_free(collection->captures.items[i]);
	ss_vector_free(&collection->captures);
	ss_snap_job_deinit(&collection->job);
}

static uint64_t to_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SS_NS_PER_SECOND + (uint64_t)time->tv_usec * 1000;
}

/* CPU time of this process and of the children that it has waited for. */
static uint64_t cpu_time(void)
{
	struct rusage own;
	struct rusage children;

	/* Neither can fail. */
	(void)getrusage(RUSAGE_SELF, &own);
	(void)getrusage(RUSAGE_CHILDREN, &children);
	return to_ns(&own.ru_utime) + to_ns(&own.ru_stime) + to_ns(&children.ru_utime) +
	       to_ns(&children.ru_stime);
}

static struct ss_error *keep(struct collection *collection, struct ss_capture *capture)
{
	struct ss_capture **slot = ss_vector_push(&collection->captures);

	if (!slot) {
		ss_capture_free(capture);
		return ss_error_no_memory();
	}
	*slot = capture;
	collection->bytes += ss_capture_size(capture);
	return NULL;
}

/* Captures, and completes the capture as the analysis of its stacks requests. */
static struct ss_error *take_first(struct collection *collection)
{
	const struct ss_series *series = collection->series;
	struct ss_snap_job *job = &collection->job;
	bool missing = false;

	ss_snap_job_deinit(job);
	*job = (struct ss_snap_job){ .analysis = {
					     .options = series->options,
					     .run = &collection->run,
					     .phases = &collection->phases,
					     .probe = true,
				     } };
	struct ss_error *error = ss_snap_job_take(job, &collection->run);
	if (!error && job->listing)
		return ss_error_new(SS_ERROR_DENIED,
				    "several snapshots need access to process %d",
				    collection->run.argument->pid);
	if (!error)
		error = ss_snap_analysis_run(&job->analysis, &missing);
	return error ? error : keep(collection, take_ptr(job->analysis.capture));
}

/* The threads whose registers were needed the first time are stopped again. */
static struct ss_error *take_next(struct collection *collection)
{
	struct ss_snap_job *job = &collection->job;
	struct ss_capture_options options = job->options;
	struct ss_capture *capture = NULL;

	options.previous = collection->captures.items[collection->captures.count - 1];
	options.filter_data = &collection->run;
	ss_watchdog_begin(collection->run.argument->pid, options.timeout_ms);
	struct ss_error *error = ss_capture_take(job->target, &options, &capture);
	if (!error && job->stopped_count) /* or these stacks stay incomplete */
		ss_error_free(ss_capture_complete(capture, job->target, &options,
						  job->stopped, job->stopped_count));
	ss_watchdog_end();
	return error ? error : keep(collection, capture);
}

static struct ss_error *take(struct collection *collection)
{
	bool first = collection->captures.count == 0;
	uint64_t before_ns = cpu_time();

	collection->run = *collection->series->run;
	struct ss_error *error = first ? take_first(collection) : take_next(collection);
	if (error && ss_selection_run_is_empty(&collection->run)) {
		ss_error_free(error);
		collection->empty++;
		return NULL;
	}
	*(first ? &collection->first_cpu_ns : &collection->later_cpu_ns) +=
		cpu_time() - before_ns;
	return error;
}

static bool is_full(const struct collection *collection)
{
	const struct ss_options *options = collection->series->options;
	uint64_t max = options->max_total ? options->max_total : TOTAL_DEFAULT;

	if (collection->captures.count < COUNT_MAX && collection->bytes < max)
		return false;
	ss_failure_warn("%zu snapshots were taken: their copies take %" PRIu64
			" MiB of memory (--max-total)",
			collection->captures.count, collection->bytes >> 20);
	return true;
}

/* Whether the error ends the series, and there is something to print. */
static bool is_end(const struct collection *collection, struct ss_error *error)
{
	if (collection->captures.count == 0)
		return false;
	ss_failure_warn("after %zu snapshots: %s", collection->captures.count,
			ss_error_message(error));
	return true;
}

/* Snapshots are due at fixed times. Those that are missed are not made up for. */
static struct ss_error *collect(struct collection *collection)
{
	const struct ss_series_options *options = collection->series->series;
	sigset_t set;
	sigset_t before;
	uint64_t due_ns = ss_now_ns();
	struct ss_error *error = NULL;

	block_signals(&set, &before);
	for (size_t taken = 1;; taken++) {
		error = take(collection);
		if (error || taken == options->count || is_full(collection))
			break;
		uint64_t now = ss_now_ns();
		due_ns += options->period_ns;
		if (due_ns < now)
			due_ns = now;
		if (wait_until(&set, due_ns))
			break;
	}
	(void)wait_until(&set, 0); /* a signal that came too late: the end is near */
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (error && is_end(collection, error)) {
		ss_error_free(error);
		return NULL;
	}
	return error;
}

static void print_times(const struct collection *collection,
			const struct ss_series_times *times)
{
	size_t later = collection->captures.count - 1;
	double first_ms = (double)(collection->first_cpu_ns + times->first_ns) / 1e6;
	double later_ms = later ? (double)(collection->later_cpu_ns + times->later_ns) /
					  1e6 / (double)later :
				  0;

	ss_failure_warn("CPU time: %.2f ms for the first snapshot (capture %.2f), %.2f "
			"ms for each later one (capture %.2f)",
			first_ms, (double)collection->first_cpu_ns / 1e6, later_ms,
			later ? (double)collection->later_cpu_ns / 1e6 / (double)later :
				0);
}

static struct ss_error *nothing(const struct collection *collection)
{
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID,
			     "the selection matched no thread of process %d in %zu "
			     "snapshots",
			     collection->run.argument->pid, collection->empty),
		"stacksnap %d shows all threads", collection->run.argument->pid);
}

struct ss_error *ss_series_run(const struct ss_series *series, bool *ret)
{
	__attribute__((cleanup(collection_deinit))) struct collection collection = {
		.series = series,
		.phases = { .current = SS_PHASE_COUNT },
	};
	struct ss_series_times times = {};
	struct ss_error *error = collect(&collection);

	if (error)
		return error;
	if (collection.captures.count == 0)
		return nothing(&collection);
	if (collection.empty)
		ss_failure_warn("%zu snapshots without a thread that is selected are not "
				"counted",
				collection.empty);
	ss_capture_add_related(collection.captures.items[collection.captures.count - 1],
			       collection.job.target);
	struct ss_series_analysis analysis = {
		.series = series,
		.captures = collection.captures.items,
		.count = collection.captures.count,
		.owner = collection.job.analysis.owner,
		.requests.debuginfod = series->debuginfod,
	};
	error = ss_series_analysis_run(&analysis, ret, &times);
	ss_series_analysis_deinit(&analysis);
	if (!error && series->options->common.verbose)
		print_times(&collection, &times);
	return error;
}
