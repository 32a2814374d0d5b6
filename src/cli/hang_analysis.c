#include "cli/hang_analysis.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/registers.h"

SS_DEFINE_CLEANUP(struct ss_progress, progress, ss_progress_free)

/* A goroutine that waits for a lock for longer than this is blocked. */
enum { BLOCKED_MS = 1000 };

/* Other requests begin otherwise. */
enum request_kind { REQUEST_GOROUTINES = 'G', REQUEST_RUNTIMES = 'R' };

struct plan_request {
	char kind; /* enum request_kind */
	struct ss_gather_plan plan;
};

/* The snapshots of all captures. */
struct series {
	struct ss_snapshot *snapshots[SS_HANG_CAPTURES];
	size_t count;
};

static void series_deinit(struct series *series)
{
	for (size_t i = 0; i < series->count; i++)
		ss_snapshot_free(series->snapshots[i]);
}

/* Asks whether a thread has not run since the last capture; the parent knows such requests by
   the sign. */
static bool check_last(void *data, pid_t tid)
{
	return ss_sandbox_check(data, -tid);
}

static struct ss_error *unwind(const struct ss_hang_analysis *analysis,
			       const struct ss_sandbox_attempt *attempt,
			       struct series *series)
{
	const struct ss_hang_observation *observation = analysis->observation;
	struct ss_unwind_options unwind_options = {
		.size = sizeof(unwind_options),
		.max_frames = analysis->options->common.max_frames,
		.read = ss_sandbox_read,
		.check = ss_sandbox_check,
		.read_data = ss_drop_const(attempt),
		.native = analysis->options->native,
		.no_runtimes = attempt->level != SS_SANDBOX_NAMES,
	};
	struct ss_error *error = NULL;

	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	for (size_t i = 0; i < observation->count && !error; i++) {
		if (i + 1 == observation->count) {
			unwind_options.check = check_last;
			unwind_options.tasks = analysis->options->tasks > 0;
		}
		error = ss_capture_unwind(observation->captures[i], attempt->session,
					  &unwind_options, &series->snapshots[i]);
		series->count += !error;
	}
	return error;
}

static struct ss_error *interpret(const struct ss_hang_analysis *analysis,
				  const struct ss_sandbox_attempt *attempt,
				  const struct series *series)
{
	const struct ss_hang_observation *observation = analysis->observation;
	const struct ss_options *options = analysis->options;
	struct ss_snapshot *last = series->snapshots[series->count - 1];
	bool names = attempt->level == SS_SANDBOX_NAMES;
	struct ss_error *error = NULL;

	ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
	for (size_t i = 0; i < series->count && names && !error; i++)
		error = ss_snapshot_symbolize(series->snapshots[i], attempt->session,
					      options->symbols.flags);
	if (error)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_DIAGNOSE);
	if (names)
		error = ss_snapshot_add_related(last,
						observation->captures[series->count - 1],
						attempt->session, options->symbols.flags);
	const struct ss_diagnose_options diagnose_options = {
		.size = sizeof(diagnose_options),
		.waits = options->waits,
	};
	if (!error)
		error = ss_snapshot_diagnose(last, &diagnose_options);
	if (!error)
		ss_snapshot_compare_goroutines(last, series->snapshots[0]);
	return error;
}

/* Without waits there is no verdict. */
static struct ss_error *refuse(const struct ss_sandbox_attempt *attempt)
{
	_cleanup_free_ char *problem = ss_analysis_problem(attempt, NULL, NULL, false);

	return ss_error_new(SS_ERROR_SYSTEM, "%s",
			    problem ? problem : "waits are missing");
}

static struct ss_error *write_report(const struct ss_hang_analysis *analysis,
				     const struct ss_sandbox_attempt *attempt,
				     const struct ss_snapshot *last,
				     const struct ss_progress *progress)
{
	_cleanup_free_ char *problem =
		ss_analysis_problem(attempt, ss_analysis_snapshot_module, last, false);
	_cleanup_free_ char *advice = ss_analysis_advice(attempt, last, analysis->options,
							 analysis->privileged);
	const struct ss_format_options format_options = {
		.size = sizeof(format_options),
		.raw = attempt->level != SS_SANDBOX_NAMES,
		.verbose = analysis->options->common.verbose,
		.goroutine_groups = analysis->options->goroutines,
		.all = analysis->options->all,
		.color = analysis->color,
		.row_options = &analysis->rows.options,
		.problem = problem,
		.advice = advice,
	};
	FILE *out = NULL;
	struct ss_error *error = ss_analysis_open(attempt, &out);

	if (error)
		return error;
	error = analysis->options->common.format->write_hang(last, progress,
							     &format_options, out);
	if (problem)
		ss_failure_warn("%d: %s", ss_snapshot_process(last)->pid, problem);
	ss_incomplete_print_modules(last);
	/* cppcheck-suppress returnDanglingLifetime; the error does not refer to the options */
	return ss_analysis_close(out, error);
}

/* Requests the memory that describes goroutines. *ret: whether there are any. */
static struct ss_error *request_goroutines(const struct ss_hang_analysis *analysis,
					   const struct ss_sandbox_attempt *attempt,
					   bool *ret)
{
	const struct ss_hang_observation *observation = analysis->observation;
	struct plan_request request = { .kind = REQUEST_GOROUTINES };

	if (!attempt->may_request || analysis->asked_goroutines ||
	    analysis->options->goroutines == 0 || observation->count < 2)
		return NULL;
	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	if (!ss_capture_plan_goroutines(observation->captures[observation->count - 1],
					attempt->session, &request.plan))
		return NULL;
	*ret = true;
	return ss_sandbox_request(attempt, &request, sizeof(request));
}

/* Requests other captures if frames of runtimes were not copied with the stack of a thread that
   runs. *ret: whether there are any. */
static struct ss_error *request_runtimes(const struct ss_hang_analysis *analysis,
					 const struct ss_sandbox_attempt *attempt,
					 const struct series *series, bool *ret)
{
	const struct ss_hang_observation *observation = analysis->observation;
	struct plan_request request = { .kind = REQUEST_RUNTIMES };

	/* Otherwise the stops of the first captures would count as activity. */
	if (!attempt->may_request || analysis->repeated ||
	    analysis->options->mode != SS_MODE_AUTO)
		return NULL;
	for (size_t i = series->count; i > 0 && !*ret; i--)
		*ret = ss_snapshot_plan_runtimes(series->snapshots[i - 1],
						 observation->captures[i - 1],
						 &request.plan);
	return *ret ? ss_sandbox_request(attempt, &request, sizeof(request)) : NULL;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct ss_hang_analysis *analysis = data;
	const struct ss_hang_observation *observation = analysis->observation;
	__attribute__((cleanup(series_deinit))) struct series series = {};
	_cleanup_(progress_cleanup) struct ss_progress *progress = NULL;

	bool requested = false;

	if (attempt->no_waits)
		return refuse(attempt);
	struct ss_error *error = request_goroutines(analysis, attempt, &requested);
	if (error || requested)
		return error;
	error = unwind(analysis, attempt, &series);
	if (!error)
		error = request_runtimes(analysis, attempt, &series, &requested);
	if (error || requested)
		return error;
	if (attempt->may_request && !analysis->completed &&
	    analysis->options->mode == SS_MODE_AUTO)
		error = ss_registers_request(attempt, series.snapshots[series.count - 1],
					     &requested);
	if (error || requested)
		return error;
	error = interpret(analysis, attempt, &series);
	if (!error)
		error = ss_file_requests_send(&analysis->requests, attempt, &requested);
	if (requested && !error)
		return NULL;
	if (!error)
		error = ss_progress_new(
			observation->before, observation->after,
			(const struct ss_snapshot *const *)series.snapshots, series.count,
			&progress);
	if (error)
		return error;
	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	ss_sandbox_set_value(attempt, ss_progress_verdict(progress));
	if (ss_progress_verdict(progress) < analysis->quiet_below)
		return NULL;
	return write_report(analysis, attempt, series.snapshots[series.count - 1],
			    progress);
}

static void attach(const struct ss_hang_analysis *analysis)
{
	const struct ss_hang_observation *observation = analysis->observation;

	for (size_t i = 0; i < observation->count; i++)
		ss_analysis_attach(analysis->options, &observation->owner,
				   observation->captures[i]);
}

static void complete(struct ss_hang_analysis *analysis, const void *bytes, size_t size)
{
	size_t count = 0;
	_cleanup_free_ pid_t *tids = ss_registers_read_request(bytes, size, &count);

	if (!tids || analysis->completed)
		return;
	analysis->completed = true;
	ss_hang_observation_complete(analysis->observation, analysis->options, tids,
				     count);
	attach(analysis);
}

static void gather(const struct ss_hang_analysis *analysis, size_t index,
		   const struct ss_gather_plan *plan)
{
	const struct ss_hang_observation *observation = analysis->observation;
	_cleanup_error_ struct ss_error *error = ss_capture_gather(
		observation->captures[index], observation->target, plan);

	if (error && analysis->options->common.verbose)
		ss_failure_warn("%s", ss_error_message(error));
}

/* Copies what describes goroutines twice, to tell which of them move. */
static void gather_goroutines(struct ss_hang_analysis *analysis, const void *bytes)
{
	const struct timespec pause = { .tv_sec = BLOCKED_MS / 1000 };
	struct plan_request request;

	memcpy(&request, bytes, sizeof(request));
	analysis->asked_goroutines = true;
	gather(analysis, 0, &request.plan);
	(void)nanosleep(&pause, NULL); /* less, after a signal */
	gather(analysis, analysis->observation->count - 1, &request.plan);
}

static void repeat(struct ss_hang_analysis *analysis, const void *bytes)
{
	struct plan_request request;

	memcpy(&request, bytes, sizeof(request));
	if (analysis->repeated)
		return;
	analysis->repeated = true;
	ss_late_reader_free(take_ptr(analysis->reader));
	ss_late_reader_free(take_ptr(analysis->checker));
	ss_hang_observation_repeat(analysis->observation, analysis->options,
				   &request.plan);
	attach(analysis);
}

static void answer(void *data, const void *bytes, size_t size)
{
	struct ss_hang_analysis *analysis = data;

	if (size == sizeof(struct plan_request) &&
	    *(const char *)bytes == REQUEST_GOROUTINES)
		gather_goroutines(analysis, bytes);
	else if (size == sizeof(struct plan_request) &&
		 *(const char *)bytes == REQUEST_RUNTIMES)
		repeat(analysis, bytes);
	else if (ss_registers_is_request(bytes, size))
		complete(analysis, bytes, size);
	else
		ss_file_requests_answer(&analysis->requests, bytes, size);
}

/* A thread that has not run since the first capture has the same frames in all of them. */
static struct ss_late_reader *get_reader(const struct ss_hang_analysis *analysis,
					 size_t index, struct ss_late_reader **reader)
{
	const struct ss_hang_observation *observation = analysis->observation;

	if (!*reader && index < observation->count)
		ss_error_free(ss_late_reader_new(observation->captures[index],
						 observation->target, reader));
	return *reader;
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	struct ss_hang_analysis *analysis = data;
	struct ss_late_reader *reader = get_reader(analysis, 0, &analysis->reader);

	return reader ? ss_late_reader_read(reader, address, bytes, size) : 0;
}

static bool check_thread(void *data, pid_t tid)
{
	struct ss_hang_analysis *analysis = data;
	struct ss_late_reader *reader =
		tid > 0 ? get_reader(analysis, 0, &analysis->reader) :
			  get_reader(analysis, analysis->observation->count - 1,
				     &analysis->checker);

	/* The child may be hostile: the smallest number has no opposite. */
	return reader && tid != INT32_MIN &&
	       ss_late_reader_check(reader, tid > 0 ? tid : -tid);
}

struct ss_error *ss_hang_analysis_run(struct ss_hang_analysis *analysis,
				      enum ss_verdict *ret)
{
	const struct ss_hang_observation *observation = analysis->observation;
	struct ss_session_options session;
	struct ss_analysis sandboxed = {
		.work = work,
		.data = analysis,
		.color = analysis->color,
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	analysis->privileged = geteuid() == 0;
	ss_analysis_configure(&sandboxed, &session, analysis->options,
			      &observation->owner, observation->count,
			      &analysis->requests);
	sandboxed.options.answer = answer;
	sandboxed.options.read = read_memory;
	sandboxed.options.check = check_thread;
	attach(analysis);
	sandboxed.options.last_level = SS_SANDBOX_RAW;
	sandboxed.options.max_requests += analysis->options->mode == SS_MODE_AUTO ? 3 : 2;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	ss_late_reader_free(take_ptr(analysis->reader));
	ss_late_reader_free(take_ptr(analysis->checker));
	analysis->died = error && ss_error_code(error) == SS_ERROR_SYSTEM;
	if (!error)
		error = ss_analysis_copy(&sandboxed, result, analysis->output);
	if (error)
		return error;
	*ret = (enum ss_verdict)SS_MIN(result->value, (uint64_t)SS_VERDICT_DEADLOCK);
	return NULL;
}
