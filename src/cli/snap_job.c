#include "cli/snap_job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/failure.h"
#include "cli/watchdog.h"

/* Registers may be needed only after more of a stack was copied. */
enum { STOPS = 2 };

void ss_snap_job_deinit(struct ss_snap_job *job)
{
	ss_late_reader_free(job->reader);
	ss_snap_analysis_deinit(&job->analysis);
	ss_target_close(job->target);
	free(job->stopped);
}

/* After a failure, for instance because threads have ended, their stacks stay incomplete. */
static void warn(const struct ss_snap_job *job, struct ss_error *error)
{
	if (error && job->analysis.options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
	ss_error_free(error);
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* For later captures of the same process. Without memory, the stacks of these threads stay
   incomplete there. */
static void keep_stopped(struct ss_snap_job *job, const pid_t *tids, size_t count)
{
	pid_t *stopped =
		reallocarray(job->stopped, job->stopped_count + count, sizeof(*stopped));

	if (!stopped)
		return;
	job->stopped = stopped;
	memcpy(stopped + job->stopped_count, tids, count * sizeof(*tids));
	job->stopped_count += count;
	qsort(stopped, job->stopped_count, sizeof(*stopped), compare_tids);
}

/* Stops the threads whose registers are requested. Returns whether there are any. */
static bool read_registers(struct ss_snap_job *job,
			   const struct ss_stack_request *requests, size_t count)
{
	_cleanup_free_ pid_t *tids = calloc(count + 1, sizeof(*tids));
	size_t stops = 0;

	for (size_t i = 0; tids && i < count; i++) {
		if (requests[i].address == 0)
			tids[stops++] = requests[i].tid;
	}
	if (stops == 0 || job->analysis.stops == 0)
		return false;
	ss_watchdog_begin(job->analysis.run->argument->pid, job->options.timeout_ms);
	warn(job, ss_capture_complete(job->analysis.capture, job->target, &job->options,
				      tids, stops));
	ss_watchdog_end();
	keep_stopped(job, tids, stops);
	return true;
}

static void add_related(struct ss_snap_job *job)
{
	const struct ss_snap_analysis *analysis = &job->analysis;

	if (!analysis->options->common.format->unsymbolized &&
	    !analysis->options->no_waits)
		ss_capture_add_related(analysis->capture, job->target);
}

/* Captures again, with the plan. If that fails, the first capture stays. */
static bool capture_again(struct ss_snap_job *job)
{
	struct ss_snap_analysis *analysis = &job->analysis;
	struct ss_capture *capture = NULL;

	job->options.plan = &job->plan;
	job->options.previous = NULL; /* all that run are stopped */
	job->options.modules = analysis->capture;
	ss_watchdog_begin(analysis->run->argument->pid, job->options.timeout_ms);
	struct ss_error *error = ss_capture_take(job->target, &job->options, &capture);
	ss_watchdog_end();
	job->options.plan = NULL;
	job->options.modules = NULL;
	warn(job, error);
	if (!capture)
		return false;
	ss_late_reader_free(take_ptr(job->reader));
	ss_capture_free(analysis->capture);
	analysis->capture = capture;
	add_related(job);
	return true;
}

/* What JIT compilers registered is read without a stop first: it is needed together with
   the stacks only if there is something. */
static bool use_plan(struct ss_snap_job *job, const struct ss_snap_request *request)
{
	struct ss_snap_analysis *analysis = &job->analysis;

	job->plan = request->plan;
	if (request->goroutines) {
		job->goroutine_plan = request->plan;
		job->has_goroutines = true;
	}
	if (request->runtimes) {
		job->runtime_plan = request->plan;
		job->has_runtimes = true;
		analysis->plans++;
	}
	if (request->jit == SS_JIT_CAPTURE || request->runtimes)
		return job->options.mode != SS_MODE_NO_STOP && capture_again(job);
	struct ss_error *error =
		ss_capture_gather(job->analysis.capture, job->target, &job->plan);
	bool done = !error;
	warn(job, error);
	return done;
}

static bool complete_stacks(struct ss_snap_job *job,
			    const struct ss_snap_request *request)
{
	size_t grown = 0;
	bool stopped = read_registers(job, request->stacks, request->count);

	warn(job, ss_capture_extend(job->analysis.capture, job->target, &job->options,
				    request->stacks, request->count, &grown));
	return stopped || grown > 0;
}

static bool complete(void *data, const struct ss_snap_request *request)
{
	struct ss_snap_job *job = data;

	ss_phases_enter(job->analysis.phases, SS_PHASE_CAPTURE);
	bool changed = request->goroutines || request->jit != SS_JIT_NONE ||
				       request->runtimes ?
			       use_plan(job, request) :
			       complete_stacks(job, request);
	ss_phases_enter(job->analysis.phases, SS_PHASE_COUNT);
	return changed;
}

/* For the frames of runtimes, while the stacks are interpreted. */
static struct ss_late_reader *get_reader(struct ss_snap_job *job)
{
	if (!job->reader)
		warn(job, ss_late_reader_new(job->analysis.capture, job->target,
					     &job->reader));
	return job->reader;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	struct ss_late_reader *reader = get_reader(data);

	return reader ? ss_late_reader_read(reader, address, bytes, size) : 0;
}

static bool check_thread(void *data, pid_t tid)
{
	struct ss_late_reader *reader = get_reader(data);

	return reader && ss_late_reader_check(reader, tid);
}

/* If access to the process was refused, captures names and states of its threads instead. */
static struct ss_error *list_threads(struct ss_snap_job *job, struct ss_error *refusal)
{
	_cleanup_error_ struct ss_error *owned = refusal;
	enum ss_error_code code = ss_error_code(refusal);

	if (code != SS_ERROR_DENIED && code != SS_ERROR_TRACED)
		return take_ptr(owned);
	ss_target_close(take_ptr(job->target));
	_cleanup_error_ struct ss_error *error =
		ss_target_open_listing(job->analysis.run->argument->pid, &job->target);
	if (!error)
		error = ss_capture_take(job->target, &job->options,
					&job->analysis.capture);
	if (error)
		return take_ptr(owned);
	ss_failure_print(refusal);
	job->listing = true;
	return NULL;
}

static struct ss_error *take(struct ss_snap_job *job, struct ss_selection_run *run)
{
	struct ss_snap_analysis *analysis = &job->analysis;
	const struct ss_options *options = analysis->options;

	job->options = ss_options_capture(options);
	if (ss_selection_run_is_active(run)) {
		job->options.filter = ss_selection_run_filter;
		job->options.filter_data = run;
	}
	ss_phases_enter(analysis->phases, SS_PHASE_OPEN);
	struct ss_error *error = ss_target_open(run->argument->pid, &job->target);
	if (!error)
		analysis->owner = ss_analysis_owner_of(job->target);
	ss_phases_enter(analysis->phases, SS_PHASE_CAPTURE);
	if (!error)
		error = ss_capture_take(job->target, &job->options, &analysis->capture);
	if (error)
		return list_threads(job, error);
	add_related(job);
	ss_row_source_init(&analysis->rows, &options->common.rows);
	ss_row_source_add(&analysis->rows, &options->common.rows, job->target);
	analysis->complete = complete;
	analysis->complete_data = job;
	analysis->read = read_memory;
	analysis->check = check_thread;
	analysis->stops = options->mode == SS_MODE_AUTO ? STOPS : 0;
	return NULL;
}

struct ss_error *ss_snap_job_take(struct ss_snap_job *job, struct ss_selection_run *run)
{
	pid_t pid = run->argument->pid;

	ss_watchdog_begin(pid, job->analysis.options->timeout_ms);
	_cleanup_error_ struct ss_error *error = take(job, run);
	ss_watchdog_end();
	if (ss_selection_run_is_empty(run))
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "the selection matches no thread of process %d",
				     pid),
			"stacksnap %d shows all threads", pid);
	return take_ptr(error);
}
