#include "cli/snap_analysis.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vector.h"
#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/registers.h"

SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)
SS_DEFINE_CLEANUP(struct ss_capture, capture, ss_capture_free)

static void complete(struct ss_snap_analysis *analysis, const void *bytes, size_t size)
{
	size_t count = 0;
	_cleanup_free_ pid_t *tids = ss_registers_read_request(bytes, size, &count);

	if (!tids || !analysis->complete || analysis->completed)
		return;
	analysis->completed = true;
	analysis->complete(analysis->complete_data, tids, count);
	ss_analysis_attach(analysis->options, &analysis->owner, analysis->capture);
}

static void answer(void *data, const void *bytes, size_t size)
{
	struct ss_snap_analysis *analysis = data;

	if (ss_registers_is_request(bytes, size))
		complete(analysis, bytes, size);
	else
		ss_file_requests_answer(&analysis->requests, bytes, size);
}

static struct ss_error *unwind(const struct ss_snap_analysis *analysis,
			       const struct ss_sandbox_attempt *attempt,
			       struct ss_snapshot **ret)
{
	struct ss_unwind_options options = {
		.size = sizeof(options),
		.max_frames = analysis->options->common.max_frames,
	};

	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	ss_phases_enter(analysis->phases, SS_PHASE_UNWIND);
	if (attempt->level == SS_SANDBOX_PLACES) {
		options.max_frames = 1;
		options.frames_reason = "it could not be unwound";
	}
	struct ss_error *error =
		ss_capture_unwind(analysis->capture, attempt->session, &options, ret);
	if (!error && ss_snapshot_thread_count(*ret) == 0)
		error = analysis->load ? ss_error_new(SS_ERROR_INVALID,
						      "the selection matches no thread") :
					 ss_error_new(SS_ERROR_NO_PROCESS,
						      "process %d no longer has threads",
						      analysis->run->argument->pid);
	return error;
}

static struct ss_error *symbolize(const struct ss_snap_analysis *analysis,
				  const struct ss_sandbox_attempt *attempt,
				  struct ss_snapshot *snapshot)
{
	const struct ss_options *options = analysis->options;
	/* A recording has no names, but lock analysis needs them. */
	unsigned flags = options->common.format->unsymbolized ?
				 SS_NO_SOURCE | SS_NO_INLINES :
				 options->symbols.flags;

	if (attempt->level != SS_SANDBOX_NAMES)
		return NULL;
	ss_sandbox_enter(attempt, SS_SANDBOX_SYMBOLIZE);
	if (options->common.format->unsymbolized)
		ss_snapshot_identify_files(snapshot, attempt->session);
	if (options->common.format->unsymbolized && options->no_waits)
		return NULL;
	ss_phases_enter(analysis->phases, SS_PHASE_SYMBOLIZE);
	return ss_snapshot_symbolize(snapshot, attempt->session, flags);
}

static struct ss_error *diagnose(const struct ss_snap_analysis *analysis,
				 const struct ss_sandbox_attempt *attempt,
				 struct ss_snapshot *snapshot)
{
	const struct ss_options *options = analysis->options;
	struct ss_error *error = NULL;

	if (attempt->level == SS_SANDBOX_PLACES || attempt->no_waits || options->no_waits)
		return NULL;
	ss_sandbox_enter(attempt, SS_SANDBOX_DIAGNOSE);
	ss_phases_enter(analysis->phases, SS_PHASE_DIAGNOSE);
	if (attempt->level == SS_SANDBOX_NAMES)
		error = ss_snapshot_add_related(snapshot, analysis->capture,
						attempt->session, options->symbols.flags);
	const struct ss_diagnose_options diagnose_options = {
		.size = sizeof(diagnose_options),
		.waits = options->waits,
	};
	return error ? error : ss_snapshot_diagnose(snapshot, &diagnose_options);
}

static struct ss_error *print(const struct ss_snap_analysis *analysis,
			      const struct ss_sandbox_attempt *attempt,
			      const char *problem, const struct ss_snapshot *snapshot)
{
	const struct ss_options *options = analysis->options;
	const struct ss_format *format = options->common.format;
	_cleanup_free_ char *advice =
		format == &ss_format_text && attempt->level == SS_SANDBOX_NAMES ?
			ss_analysis_advice(snapshot, options, analysis->privileged) :
			NULL;
	const struct ss_format_options format_options = {
		.size = sizeof(format_options),
		.raw = attempt->level != SS_SANDBOX_NAMES,
		.no_group = options->no_group,
		/* Threads that the user selected are shown, whatever they do. */
		.all = options->all || ss_selection_run_is_active(analysis->run),
		.verbose = options->common.verbose,
		.color = analysis->color,
		.max_stack = options->common.max_stack,
		.problem = problem,
		.advice = advice,
	};
	FILE *out = NULL;

	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	ss_phases_enter(analysis->phases, SS_PHASE_RENDER);
	struct ss_error *error = ss_analysis_open(attempt, &out);
	if (error)
		return error;
	if (analysis->separate && format->separator)
		(void)fputs(format->separator, out);
	error = format->write_snapshot(snapshot, &format_options, out);
	return ss_analysis_close(out, error);
}

/* Writes what is missing to standard error; returns whether anything is. */
static bool report_missing(const struct ss_snap_analysis *analysis, const char *problem,
			   const struct ss_snapshot *snapshot)
{
	const struct ss_options *options = analysis->options;
	size_t missing = ss_selection_run_report(analysis->run, snapshot);

	ss_phases_enter(analysis->phases, SS_PHASE_COUNT);
	missing += ss_incomplete_count(snapshot);
	if (problem)
		ss_failure_warn("%d: %s", ss_snapshot_process(snapshot)->pid, problem);
	if (!options->common.format->explains)
		ss_incomplete_print(snapshot, options->common.max_stack);
	if (!options->symbols.raw)
		ss_incomplete_print_modules(snapshot);
	if (options->common.verbose)
		ss_phases_print(analysis->phases, snapshot);
	return missing > 0 || problem;
}

/* requests: those that the session adds to. */
static struct ss_error *interpret(const struct ss_snap_analysis *analysis,
				  const struct ss_sandbox_attempt *attempt,
				  const struct ss_file_requests *requests)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	bool requested = false;
	struct ss_error *error = unwind(analysis, attempt, &snapshot);

	if (!error && attempt->may_request && analysis->complete && !analysis->completed)
		error = ss_registers_request(attempt, snapshot, &requested);
	if (error || requested)
		return error;
	error = symbolize(analysis, attempt, snapshot);
	if (!error)
		error = diagnose(analysis, attempt, snapshot);
	if (!error)
		error = ss_file_requests_send(requests, attempt, &requested);
	if (error || requested)
		return error;
	_cleanup_free_ char *problem =
		ss_analysis_problem(attempt, ss_analysis_snapshot_module, snapshot,
				    analysis->options->symbols.raw);
	error = print(analysis, attempt, problem, snapshot);
	if (!error)
		ss_sandbox_set_value(attempt,
				     report_missing(analysis, problem, snapshot));
	return error;
}

static struct ss_error *work(void *data, const struct ss_sandbox_attempt *attempt)
{
	const struct ss_snap_analysis *given = data;
	struct ss_snap_analysis analysis = *given;
	_cleanup_(capture_cleanup) struct ss_capture *loaded = NULL;
	struct ss_error *error = NULL;

	if (analysis.load) {
		ss_phases_enter(analysis.phases, SS_PHASE_CAPTURE);
		error = analysis.load(analysis.load_data, attempt, &loaded);
		analysis.capture = loaded;
	}
	return error ? error : interpret(&analysis, attempt, &given->requests);
}

struct ss_error *ss_snap_analysis_run(struct ss_snap_analysis *analysis, bool *ret)
{
	const struct ss_options *options = analysis->options;
	struct ss_session_options session;
	struct ss_analysis sandboxed = {
		.work = work,
		.data = analysis,
		.binary = options->common.format->binary,
		.color = analysis->color,
	};
	_cleanup_(ss_sandbox_result_cleanup) struct ss_sandbox_result *result = NULL;

	analysis->privileged = geteuid() == 0;
	ss_analysis_configure(&sandboxed, &session, options, &analysis->owner, 1,
			      &analysis->requests);
	ss_analysis_attach(options, &analysis->owner, analysis->capture);
	sandboxed.options.first_level = options->symbols.raw ? SS_SANDBOX_RAW :
							       SS_SANDBOX_NAMES;
	if (analysis->load) /* untrusted input is not read with privileges */
		sandboxed.options.last_level = SS_SANDBOX_RAW;
	sandboxed.options.max_requests += analysis->complete ? 1 : 0;
	sandboxed.options.answer = answer;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	if (!error)
		error = ss_analysis_copy(&sandboxed, result, analysis->output);
	if (!error)
		*ret = result->value != 0;
	return error;
}

void ss_snap_analysis_deinit(struct ss_snap_analysis *analysis)
{
	ss_capture_free(analysis->capture);
	ss_file_requests_deinit(&analysis->requests);
}
