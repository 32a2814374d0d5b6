#include "cli/series_capture.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/watchdog.h"

void ss_series_capture_deinit(struct ss_series_capture *series)
{
	for (size_t i = 0; i < series->captures.count; i++)
		ss_capture_free(series->captures.items[i]);
	ss_vector_free(&series->captures);
	ss_snap_job_deinit(&series->job);
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

static struct ss_error *keep(struct ss_series_capture *series, struct ss_capture *capture)
{
	struct ss_capture **slot = ss_vector_push(&series->captures);

	if (!slot) {
		ss_capture_free(capture);
		return ss_error_no_memory();
	}
	*slot = capture;
	series->bytes += ss_capture_size(capture);
	return NULL;
}

/* Captures, and completes the capture as the analysis of its stacks requests. */
static struct ss_error *take_first(struct ss_series_capture *series)
{
	struct ss_snap_job *job = &series->job;
	bool missing = false;

	ss_snap_job_deinit(job);
	series->phases.current = SS_PHASE_COUNT;
	*job = (struct ss_snap_job){ .analysis = {
					     .options = series->options,
					     .run = &series->run,
					     .phases = &series->phases,
					     .probe = true,
					     .save = true,
					     .save_tasks = series->tasks,
					     .end_signals = series->end_signals,
				     } };
	struct ss_error *error = ss_snap_job_take(job, &series->run);
	if (!error && job->listing)
		return ss_error_new(SS_ERROR_DENIED,
				    "several snapshots need access to process %d",
				    series->run.argument->pid);
	if (!error)
		error = ss_snap_analysis_run(&job->analysis, &missing);
	ss_late_reader_free(take_ptr(job->reader)); /* it is for that capture */
	return error ? error : keep(series, take_ptr(job->analysis.capture));
}

/* Without them the snapshot has its threads. */
static void read_goroutines(const struct ss_snap_job *job, struct ss_capture *capture)
{
	_cleanup_error_ struct ss_error *error =
		ss_capture_gather(capture, job->target, &job->goroutine_plan);

	if (error && job->analysis.options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
}

/* Finds the functions of runtimes before the process goes on; at worst there are native frames
   only. Errors: INTERRUPTED. */
static struct ss_error *find_functions(struct ss_snap_job *job,
				       struct ss_capture **capture)
{
	struct ss_snap_analysis *analysis = &job->analysis;
	bool missing = false;

	analysis->capture = take_ptr(*capture);
	analysis->plans = job->has_runtimes;
	analysis->settled = false;
	analysis->stops = 0;
	analysis->asked_goroutines = true;
	_cleanup_error_ struct ss_error *error = ss_snap_analysis_run(analysis, &missing);
	ss_late_reader_free(take_ptr(job->reader));
	*capture = take_ptr(analysis->capture);
	if (error && ss_error_code(error) == SS_ERROR_INTERRUPTED)
		return take_ptr(error);
	if (error && analysis->options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
	return NULL;
}

/* A runtime that is not initialised yet counts as one. */
static bool must_find_functions(const struct ss_snap_job *job,
				const struct ss_capture *capture)
{
	const struct ss_snap_analysis *analysis = &job->analysis;

	if (!analysis->saved)
		return ss_capture_has_other_modules(capture);
	/* Of a process that has not run since, the stacks are known. */
	return !analysis->whole || !ss_capture_has_stacks(capture);
}

/* The threads whose registers were needed the first time are stopped together with those that
   run. */
static struct ss_error *take_next(struct ss_series_capture *series)
{
	struct ss_snap_job *job = &series->job;
	struct ss_capture_options *options = &job->options;
	struct ss_capture *capture = NULL;

	options->previous = series->captures.items[series->captures.count - 1];
	options->filter_data = &series->run;
	options->stop = job->stopped;
	options->stop_count = job->stopped_count;
	options->plan = job->has_runtimes ? &job->runtime_plan : NULL;
	ss_watchdog_begin(series->run.argument->pid, options->timeout_ms);
	struct ss_error *error = ss_capture_take(job->target, options, &capture);
	if (!error && job->has_goroutines)
		read_goroutines(job, capture);
	ss_watchdog_end();
	options->plan = NULL;
	if (error)
		return error;
	if (must_find_functions(job, capture))
		error = find_functions(job, &capture);
	if (error) {
		ss_capture_free(capture);
		return error;
	}
	return keep(series, capture);
}

struct ss_error *ss_series_capture_take(struct ss_series_capture *series)
{
	bool first = series->captures.count == 0;
	uint64_t before_ns = cpu_time();

	series->run = *series->selection;
	struct ss_error *error = first ? take_first(series) : take_next(series);
	if (error && ss_selection_run_is_empty(&series->run)) {
		ss_error_free(error);
		series->empty++;
		return NULL;
	}
	*(first ? &series->first_cpu_ns : &series->later_cpu_ns) +=
		cpu_time() - before_ns;
	return error;
}
