#include "cli/snap_analysis.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/vector.h"
#include "cli/failure.h"
#include "cli/incomplete.h"
#include "cli/registers.h"
#include "cli/signals.h"

/* One for goroutines, two for JIT code, two for runtimes, two for registers, and for more and
   more of each stack. */
enum { REQUESTS_MAX = 10, PLANS_MAX = 3 };

SS_DEFINE_CLEANUP(struct ss_snapshot, snapshot, ss_snapshot_free)
SS_DEFINE_CLEANUP(struct ss_capture, capture, ss_capture_free)

typedef SS_VECTOR(struct ss_stack_request) stack_requests;

static struct ss_error *list_stacks(const struct ss_snap_analysis *analysis,
				    const struct ss_snapshot *snapshot,
				    stack_requests *ret)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		bool stop = analysis->stops > 0 &&
			    ss_registers_are_needed(snapshot, thread);
		if (!stop && thread->missing == 0)
			continue;
		struct ss_stack_request *slot = ss_vector_push(ret);
		if (!slot)
			return ss_error_no_memory();
		*slot = (struct ss_stack_request){
			.tid = thread->tid,
			.address = stop ? 0 : thread->missing,
		};
	}
	return NULL;
}

/* A request as it travels; the stacks follow. */
struct message {
	char kind; /* SS_SNAP_REQUEST */
	uint8_t runtimes;
	uint8_t goroutines;
	uint8_t completed;
	uint32_t jit;
	struct ss_gather_plan plan;
};

static void encode(const struct ss_snap_request *request, const stack_requests *stacks,
		   struct ss_buffer *ret)
{
	const struct message message = {
		.kind = SS_SNAP_REQUEST,
		.runtimes = request->runtimes,
		.goroutines = request->goroutines,
		.completed = request->completed,
		.jit = request->jit,
		.plan = request->plan,
	};

	ss_buffer_add(ret, &message, sizeof(message));
	if (stacks->count)
		ss_buffer_add(ret, stacks->items, stacks->count * sizeof(*stacks->items));
}

/* bytes are from the sandbox: untrusted. The caller frees *ret_stacks, which the request refers
   to. False: they are invalid, or no memory. The plan is checked where it is executed. */
static bool decode(const void *bytes, size_t size, struct ss_snap_request *ret,
		   struct ss_stack_request **ret_stacks)
{
	struct message message;

	if (size < sizeof(message))
		return false;
	memcpy(&message, bytes, sizeof(message));
	size_t count = (size - sizeof(message)) / sizeof(**ret_stacks);
	if (message.kind != SS_SNAP_REQUEST || message.runtimes > 1 ||
	    message.goroutines > 1 || message.completed > 1 ||
	    message.jit > SS_JIT_CAPTURE ||
	    (size - sizeof(message)) % sizeof(**ret_stacks) != 0)
		return false;
	*ret_stacks = calloc(count + 1, sizeof(**ret_stacks));
	if (!*ret_stacks)
		return false;
	memcpy(*ret_stacks, (const char *)bytes + sizeof(message),
	       count * sizeof(**ret_stacks));
	*ret = (struct ss_snap_request){
		.runtimes = message.runtimes,
		.goroutines = message.goroutines,
		.completed = message.completed,
		.jit = (enum ss_jit_plan)message.jit,
		.plan = message.plan,
		.stacks = *ret_stacks,
		.count = count,
	};
	return true;
}

/* The answer to a request for registers that could be met in place; what
   ss_capture_copy_completion() has written follows. */
struct answer {
	unsigned stops;
	bool settled;
	bool in_place; /* or a new child is needed to see it */
};

/* Whether nothing but registers is requested. */
static bool only_registers(const struct ss_snap_request *request,
			   const stack_requests *stacks)
{
	bool only = request->jit == SS_JIT_NONE && !request->runtimes;

	for (size_t i = 0; i < stacks->count; i++)
		only &= stacks->items[i].address == 0;
	return only;
}

/* Asks the parent for registers, and adds them to the capture of this process. False: they
   are to be requested otherwise; *ret_done: the parent has them, and a new child will. */
static bool ask_registers(struct ss_snap_analysis *analysis,
			  const struct ss_sandbox_attempt *attempt,
			  const struct ss_buffer *request, bool *ret_done)
{
	_cleanup_free_ uint8_t *bytes = malloc(SS_SANDBOX_ASK_MAX);
	struct answer answer;

	ss_phases_enter(analysis->phases, SS_PHASE_CAPTURE);
	size_t size = bytes ? ss_sandbox_ask(attempt, request->bytes, request->size,
					     bytes, SS_SANDBOX_ASK_MAX) :
			      0;
	if (size < sizeof(answer))
		return false;
	memcpy(&answer, bytes, sizeof(answer));
	*ret_done = !answer.in_place || !ss_capture_apply_completion(
						analysis->capture, bytes + sizeof(answer),
						size - sizeof(answer));
	if (*ret_done)
		return false;
	analysis->stops = answer.stops;
	analysis->settled = answer.settled;
	return true;
}

/* Requests what is missing of the stacks. *ret: whether there is anything, for which a new
   child is needed; *ret_again: whether the capture was completed in place, so that it is to be
   unwound again. A request is a struct ss_snap_request and the stacks. */
static struct ss_error *request_stacks(struct ss_snap_analysis *analysis,
				       const struct ss_sandbox_attempt *attempt,
				       const struct ss_snapshot *snapshot, bool *ret,
				       bool *ret_again)
{
	struct ss_snap_request request = {};
	_cleanup_buffer_ struct ss_buffer bytes = {};
	stack_requests stacks = {};
	struct ss_error *error = NULL;

	request.jit = ss_snapshot_plan_jit(snapshot, analysis->capture, &request.plan);
	request.runtimes =
		request.jit == SS_JIT_NONE &&
		(!analysis->save || analysis->plans < PLANS_MAX) &&
		ss_snapshot_plan_runtimes(snapshot, analysis->capture, &request.plan);
	if (request.jit == SS_JIT_NONE && !request.runtimes)
		error = list_stacks(analysis, snapshot, &stacks);
	*ret = request.jit != SS_JIT_NONE || request.runtimes || stacks.count > 0;
	if (!error && *ret) {
		encode(&request, &stacks, &bytes);
		error = bytes.failed ? ss_error_no_memory() : NULL;
	}
	if (!error && *ret && only_registers(&request, &stacks) &&
	    ask_registers(analysis, attempt, &bytes, &request.completed)) {
		*ret = false;
		*ret_again = true;
	} else if (!error && *ret) {
		if (request.completed) {
			bytes.size = 0;
			stacks.count = 0;
			encode(&request, &stacks, &bytes);
		}
		error = ss_sandbox_request(attempt, bytes.bytes, bytes.size);
	}
	ss_vector_free(&stacks);
	return error;
}

static void complete(struct ss_snap_analysis *analysis,
		     const struct ss_snap_request *request)
{
	if (request->completed)
		return;
	analysis->settled = true;
	if (!analysis->complete)
		return;
	bool done = analysis->complete(analysis->complete_data, request);
	analysis->asked_goroutines |= request->goroutines;
	analysis->settled = !done && !request->goroutines;
	for (size_t i = 0; i < request->count; i++) {
		if (request->stacks[i].address == 0) {
			analysis->stops -= analysis->stops > 0;
			break;
		}
	}
	ss_analysis_attach(analysis->options, &analysis->owner, analysis->capture);
}

/* bytes are from the sandbox: untrusted. */
static void answer(void *data, const void *bytes, size_t size)
{
	struct ss_snap_analysis *analysis = data;
	_cleanup_free_ struct ss_stack_request *stacks = NULL;
	struct ss_snap_request request;

	if (size == 0 || *(const char *)bytes != SS_SNAP_REQUEST)
		ss_file_requests_answer(&analysis->requests, bytes, size);
	else if (decode(bytes, size, &request, &stacks))
		complete(analysis, &request);
	else
		analysis->settled = true;
}

/* Whether a question of the child is for registers, and may be answered: each answer stops
   threads, and its time does not count, so there is a limit. */
static bool may_ask(const struct ss_snap_analysis *analysis,
		    const struct ss_snap_request *request)
{
	bool may = !analysis->settled && analysis->stops > 0 && !request->completed &&
		   !request->runtimes && !request->goroutines &&
		   request->jit == SS_JIT_NONE;

	for (size_t i = 0; i < request->count; i++)
		may &= request->stacks[i].address == 0;
	return may;
}

/* bytes are from the sandbox: untrusted. */
static size_t ask(void *data, const void *bytes, size_t size, void *ret, size_t max)
{
	struct ss_snap_analysis *analysis = data;
	_cleanup_free_ struct ss_stack_request *stacks = NULL;
	struct ss_snap_request request;
	struct answer answer = {};

	if (max < sizeof(answer) || !decode(bytes, size, &request, &stacks) ||
	    !may_ask(analysis, &request))
		return 0;
	complete(analysis, &request);
	size_t added = ss_capture_copy_completion(
		analysis->capture, (uint8_t *)ret + sizeof(answer), max - sizeof(answer));
	answer.stops = analysis->stops;
	answer.settled = analysis->settled;
	answer.in_place = added > 0;
	memcpy(ret, &answer, sizeof(answer));
	return sizeof(answer) + added;
}

/* Requests the memory that describes goroutines, first of all: soon after the capture. *ret:
   whether there are any. */
static struct ss_error *request_goroutines(const struct ss_snap_analysis *analysis,
					   const struct ss_sandbox_attempt *attempt,
					   bool *ret)
{
	struct ss_snap_request request = { .goroutines = true };
	_cleanup_buffer_ struct ss_buffer bytes = {};

	if (analysis->options->goroutines == 0 || analysis->asked_goroutines ||
	    ss_selection_run_is_active(analysis->run) ||
	    !ss_capture_plan_goroutines(analysis->capture, attempt->session,
					&request.plan))
		return NULL;
	*ret = true;
	encode(&request, &(stack_requests){}, &bytes);
	return bytes.failed ? ss_error_no_memory() :
			      ss_sandbox_request(attempt, bytes.bytes, bytes.size);
}

static struct ss_error *unwind(const struct ss_snap_analysis *analysis,
			       const struct ss_sandbox_attempt *attempt,
			       struct ss_snapshot **ret)
{
	struct ss_unwind_options options = {
		.size = sizeof(options),
		.max_frames = analysis->options->common.max_frames,
		.read = analysis->read ? ss_sandbox_read : NULL,
		.check = analysis->check ? ss_sandbox_check : NULL,
		.read_data = ss_drop_const(attempt),
		/* A report decides whether it shows them. */
		.native = analysis->options->native || analysis->save ||
			  analysis->options->common.format->unsymbolized ||
			  analysis->options->common.format->native,
		.no_runtimes = attempt->level != SS_SANDBOX_NAMES,
		.tasks = analysis->save ? analysis->save_tasks :
					  analysis->options->tasks > 0,
		.many = analysis->save,
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

static struct ss_error *print(const struct ss_snap_analysis *analysis,
			      const struct ss_sandbox_attempt *attempt,
			      const char *problem, const struct ss_snapshot *snapshot)
{
	const struct ss_options *options = analysis->options;
	const struct ss_format *format = options->common.format;
	_cleanup_free_ char *advice =
		format == &ss_format_text ? ss_analysis_advice(attempt, snapshot, options,
							       analysis->privileged) :
					    NULL;
	_cleanup_free_ char *wait_functions = NULL;
	struct ss_error *error = ss_wait_table_added(options->waits, &wait_functions);
	const struct ss_format_options format_options = {
		.size = sizeof(format_options),
		.wait_functions = wait_functions,
		.raw = attempt->level != SS_SANDBOX_NAMES,
		.no_group = options->no_group,
		/* Threads that the user selected are shown, whatever they do. */
		.all = options->all || ss_selection_run_is_active(analysis->run),
		.verbose = options->common.verbose,
		.color = analysis->color,
		.goroutine_groups = options->goroutines,
		.task_groups = options->tasks,
		.max_stack = options->common.max_stack,
		.environment = options->environment,
		.row_options = &analysis->rows.options,
		.capture = analysis->capture,
		.max_size = analysis->max_output / 4 * 3, /* room for the rest */
		.problem = problem,
		.advice = advice,
	};
	FILE *out = NULL;

	ss_sandbox_enter(attempt, SS_SANDBOX_OUTPUT);
	ss_phases_enter(analysis->phases, SS_PHASE_RENDER);
	if (!error)
		error = ss_analysis_open(attempt, &out);
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
	if (!options->symbols.raw && !options->common.format->unsymbolized)
		ss_incomplete_print_modules(snapshot);
	if (options->common.verbose)
		ss_phases_print(analysis->phases, snapshot);
	return missing > 0 || problem;
}

/* Unwinds until nothing more of the stacks can be had. *ret: a new child is needed. */
static struct ss_error *unwind_all(struct ss_snap_analysis *analysis,
				   const struct ss_sandbox_attempt *attempt,
				   struct ss_snapshot **snapshot, bool *ret)
{
	struct ss_error *error = NULL;
	bool again = true;

	while (!error && again) {
		again = false;
		ss_snapshot_free(take_ptr(*snapshot));
		error = unwind(analysis, attempt, snapshot);
		if (!error && attempt->may_request && analysis->complete &&
		    !analysis->settled)
			error = request_stacks(analysis, attempt, *snapshot, ret, &again);
	}
	return error;
}

/* Whether nothing more of the stacks could be had by another attempt, as long as no thread runs. */
static bool is_whole(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_thread_count(snapshot); i++) {
		const struct ss_thread *thread = ss_snapshot_thread(snapshot, i);
		if (thread->native_reason || thread->missing ||
		    thread->end == SS_END_UNREADABLE)
			return false;
	}
	return true;
}

/* requests: those that the session adds to. */
static struct ss_error *interpret(struct ss_snap_analysis *analysis,
				  const struct ss_sandbox_attempt *attempt,
				  const struct ss_file_requests *requests)
{
	_cleanup_(snapshot_cleanup) struct ss_snapshot *snapshot = NULL;
	bool requested = false;
	struct ss_error *error = NULL;

	ss_sandbox_enter(attempt, SS_SANDBOX_UNWIND);
	if (attempt->may_request && analysis->complete)
		error = request_goroutines(analysis, attempt, &requested);
	if (error || requested)
		return error;
	error = unwind_all(analysis, attempt, &snapshot, &requested);
	if (error || requested)
		return error;
	if (analysis->save) {
		error = ss_snapshot_save_stacks(snapshot, attempt->output);
		ss_sandbox_set_value(attempt, is_whole(snapshot));
	}
	if (error || analysis->probe)
		return error;
	error = symbolize(analysis, attempt, snapshot);
	if (!error && !analysis->options->no_waits) {
		ss_phases_enter(analysis->phases, SS_PHASE_DIAGNOSE);
		error = ss_analysis_diagnose(attempt, analysis->options,
					     analysis->capture, snapshot);
	}
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
	bool requested = false;
	struct ss_error *error = NULL;

	if (analysis.load) {
		ss_phases_enter(analysis.phases, SS_PHASE_CAPTURE);
		error = analysis.load(analysis.load_data, attempt, &loaded);
		analysis.capture = loaded;
		/* What is read of the process depends on its modules. */
		if (!error)
			error = ss_file_requests_send(&given->requests, attempt,
						      &requested);
	}
	return error || requested ? error :
				    interpret(&analysis, attempt, &given->requests);
}

static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct ss_snap_analysis *analysis = data;

	return analysis->read(analysis->complete_data, address, bytes, size);
}

static bool check_thread(void *data, pid_t tid)
{
	const struct ss_snap_analysis *analysis = data;

	return analysis->check(analysis->complete_data, tid);
}

static bool is_ended(void *data)
{
	const struct ss_snap_analysis *analysis = data;

	return ss_signals_are_pending(analysis->end_signals);
}

/* At worst there are native frames only. Once there were stacks, that is a problem of one snapshot
   of many. */
static void keep_stacks(struct ss_snap_analysis *analysis, int fd)
{
	bool any = false;
	_cleanup_error_ struct ss_error *error =
		ss_capture_add_stacks(analysis->capture, fd, &any);

	if (error && (!analysis->saved || analysis->options->common.verbose))
		ss_failure_warn("functions of runtimes are not shown: %s",
				ss_error_message(error));
	analysis->saved |= any;
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
		sandboxed.options.last_level = analysis->probe ? SS_SANDBOX_NAMES :
								 SS_SANDBOX_RAW;
	sandboxed.options.max_requests += analysis->complete ? REQUESTS_MAX : 0;
	sandboxed.options.max_output = analysis->max_output;
	sandboxed.options.answer = answer;
	sandboxed.options.read = analysis->read ? read_memory : NULL;
	sandboxed.options.check = analysis->check ? check_thread : NULL;
	sandboxed.options.ask = analysis->complete ? ask : NULL;
	sandboxed.options.stop = analysis->end_signals ? is_ended : NULL;
	struct ss_error *error = ss_analysis_run(&sandboxed, &result);
	if (!error && analysis->save) {
		keep_stacks(analysis, result->output);
		analysis->whole = result->value != 0;
	}
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
	ss_row_source_deinit(&analysis->rows);
}
