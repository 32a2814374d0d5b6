/*
 * The one pipeline: captures of a source are unwound, named and diagnosed in a confined
 * process, which asks for what is missing; the snapshots come back as data.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"
#include "data/snapshot_fields.h"
#include "data/pipeline.h"
#include "data/snapshot.h"
#include "data/gather.h"
#include "interpret/interpret.h"
#include "sandbox/sandbox.h"

enum {
	/* One for goroutines, two for JIT code, two for runtimes, two for registers, and for
	   more and more of each stack. */
	REQUESTS_MAX = 10,
	REQUEST_STACKS_MAX = 1 << 20,
	MESSAGE_MAX = 1 << 30, /* also the limit of what the child may write */
};

/* What the confined process and its parent share. Each believes nothing of the other's. */
struct shared {
	volatile uint32_t current; /* index of the capture that is being interpreted */
	volatile uint64_t spent_ns[SS_STEP_COUNT];
};

/* A request for what is missing of the last capture, as it is sent: stacks follow. Other
   requests begin otherwise. */
enum { REQUEST_KIND = 'S', FLAG_RUNTIMES = 1, FLAG_GOROUTINES = 2 };

struct request_head {
	uint8_t kind; /* REQUEST_KIND */
	uint8_t flags;
	uint8_t jit; /* enum ss_jit_plan */
	uint8_t has_plan;
};

typedef SS_VECTOR(struct ss_stack_request) stack_requests;

struct interpreter {
	struct ss_interpret_options options;
	struct ss_source *source;
	struct shared *shared;
	struct ss_interpretation *result;
	unsigned stops;
	unsigned plans;
	bool settled; /* no more can be had */
	bool asked_goroutines;
};

static const char *module_path(const void *data, size_t index)
{
	const struct ss_snapshot *snapshot = data;

	return index < ss_snapshot_module_count(snapshot) ?
		       ss_snapshot_module(snapshot, index)->path :
		       NULL;
}

/* In the confined process ---------------------------------------------------- */

struct work {
	struct interpreter *interpreter;
	const struct ss_sandbox_attempt *attempt;
	struct ss_capture **captures;
	struct ss_capture *loaded; /* owned */
	struct ss_snapshot **snapshots;
	size_t count;
	uint64_t begun_ns;
};

static void clear_snapshots(struct work *work)
{
	for (size_t i = 0; i < work->count; i++)
		ss_snapshot_free(work->snapshots[i]);
	work->count = 0;
}

static void work_deinit(struct work *work)
{
	clear_snapshots(work);
	free(work->snapshots);
	ss_capture_free(work->loaded);
}

/* Ends the time of a step. */
static void spend(struct work *work, enum ss_interpret_step step)
{
	uint64_t now = ss_now_ns();
	struct shared *shared = work->interpreter->shared;

	shared->spent_ns[step] = shared->spent_ns[step] + (now - work->begun_ns);
	work->begun_ns = now;
}

/* The parent reads for the capture that current names. */
static size_t read_memory(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct work *work = data;

	return ss_sandbox_read(ss_drop_const(work->attempt), address, bytes, size);
}

static void read_ranges(void *data, struct ss_memory_range *ranges, size_t count)
{
	const struct work *work = data;

	ss_sandbox_read_ranges(ss_drop_const(work->attempt), ranges, count);
}

static bool check_thread(void *data, pid_t tid)
{
	const struct work *work = data;

	return ss_sandbox_check(ss_drop_const(work->attempt), tid);
}

static struct ss_error *unwind_one(struct work *work, size_t index)
{
	const struct interpreter *interpreter = work->interpreter;
	const struct ss_interpret_options *given = &interpreter->options;
	const struct ss_source *source = interpreter->source;
	bool last = index + 1 == source->count;
	struct ss_unwind_options options = {
		.size = sizeof(options),
		.max_frames = given->max_frames,
		.read = source->read ? read_memory : NULL,
		.read_ranges = source->read ? read_ranges : NULL,
		.check = source->check ? check_thread : NULL,
		.read_data = ss_drop_const(work),
		.native = given->native,
		.no_runtimes = work->attempt->level != SS_SANDBOX_NAMES,
		.tasks = given->tasks && (last || source->of_processes),
		.many = given->many,
	};

	interpreter->shared->current = (uint32_t)index;
	if (work->attempt->level == SS_SANDBOX_PLACES) {
		options.max_frames = 1;
		options.frames_reason = "it could not be unwound";
	}
	struct ss_error *error = ss_capture_unwind(work->captures[index],
						   work->attempt->session, &options,
						   &work->snapshots[index]);
	work->count += !error;
	return error;
}

static bool lacks_registers(const struct ss_snapshot *snapshot,
			    const struct ss_task *thread)
{
	if (thread->stopped_ns > 0 || thread->frame_count == 0 || thread->state == 'D')
		return false;
	if (!ss_end_is_outermost(thread->end) && thread->end != SS_END_FRAMES &&
	    thread->end != SS_END_LIMIT)
		return true;
	return ss_any(thread->frame_count, i,
		      ss_snapshot_frame(snapshot, thread, i)->source ==
			      SS_FROM_RETURN_ADDRESS);
}

static struct ss_error *list_stacks(const struct interpreter *interpreter,
				    const struct ss_snapshot *snapshot,
				    stack_requests *ret, bool *ret_only_registers)
{
	*ret_only_registers = true;
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		bool stop = interpreter->stops > 0 && lacks_registers(snapshot, thread);
		if (!stop && thread->missing == 0)
			continue;
		struct ss_stack_request *slot = ss_vector_push(ret);
		if (!slot)
			return ss_error_no_memory();
		slot->tid = thread->tid;
		slot->address = stop ? 0 : thread->missing;
		*ret_only_registers &= stop;
	}
	return NULL;
}

/* What the parent answers to a question for registers; the bytes of
   ss_capture_copy_completion() follow. */
struct answer {
	uint8_t stops;
	uint8_t settled;
	uint8_t in_place; /* or a new child is needed to see it */
};

/* Asks the parent for registers, and adds them to the capture of this process. False: they
   are to be requested otherwise. *ret_done: the parent has them, and a new child will. */
static bool ask_registers(struct work *work, const struct ss_buffer *request,
			  bool *ret_done)
{
	struct interpreter *interpreter = work->interpreter;
	_cleanup_free_ uint8_t *bytes = malloc(SS_SANDBOX_ASK_MAX);
	struct answer answer;

	size_t size = bytes ? ss_sandbox_ask(work->attempt, request->bytes, request->size,
					     bytes, SS_SANDBOX_ASK_MAX) :
			      0;
	if (size < sizeof(answer))
		return false;
	memcpy(&answer, bytes, sizeof(answer));
	interpreter->stops = answer.stops;
	interpreter->settled = answer.settled != 0;
	*ret_done = !answer.in_place ||
		    !ss_capture_apply_completion(
			    work->captures[interpreter->source->count - 1],
			    bytes + sizeof(answer), size - sizeof(answer));
	return !*ret_done;
}

/* An empty request: what the parent has changed is only seen by a new child. */
static struct ss_error *request_child(const struct work *work)
{
	const struct request_head head = { .kind = REQUEST_KIND };

	return ss_sandbox_request(work->attempt, &head, sizeof(head));
}

static struct ss_error *send_plan(const struct work *work, uint8_t flags,
				  enum ss_jit_plan jit, const struct ss_gather_plan *plan)
{
	const struct request_head head = {
		.kind = REQUEST_KIND, .flags = flags, .jit = (uint8_t)jit, .has_plan = 1
	};
	struct ss_error *error = ss_sandbox_request(work->attempt, &head, sizeof(head));

	return error ? error : ss_sandbox_request(work->attempt, plan, sizeof(*plan));
}

/* Requests the memory that describes goroutines, first of all: soon after the capture. *ret:
   whether there are any. */
static struct ss_error *request_goroutines(const struct work *work, bool *ret)
{
	const struct interpreter *interpreter = work->interpreter;
	struct ss_gather_plan plan;

	if (!interpreter->options.goroutines || interpreter->asked_goroutines ||
	    !ss_capture_plan_goroutines(work->captures[interpreter->source->count - 1],
					work->attempt->session, &plan))
		return NULL;
	*ret = true;
	return send_plan(work, FLAG_GOROUTINES, SS_JIT_NONE, &plan);
}

/* Requests memory according to a plan. *ret: whether there is one. */
static struct ss_error *request_plan(const struct work *work, bool *ret)
{
	const struct interpreter *interpreter = work->interpreter;
	unsigned max = interpreter->options.max_plans;
	size_t last = work->count - 1;
	struct ss_gather_plan plan;

	enum ss_jit_plan jit = ss_snapshot_plan_jit(work->snapshots[last],
						    work->captures[last],
						    work->attempt->session, &plan);
	if (jit != SS_JIT_NONE) {
		*ret = true;
		return send_plan(work, 0, jit, &plan);
	}
	for (size_t i = work->count; i > 0 && (!max || interpreter->plans < max); i--) {
		if (!ss_snapshot_plan_runtimes(work->snapshots[i - 1],
					       work->captures[i - 1], &plan))
			continue;
		*ret = true;
		return send_plan(work, FLAG_RUNTIMES, SS_JIT_NONE, &plan);
	}
	return NULL;
}

/* Requests what is missing of the stacks of the last capture. *ret: whether there is anything
   for which a new child is needed; *ret_again: the capture was completed in place, so that
   it is to be unwound again. */
static struct ss_error *request_stacks(struct work *work, bool *ret, bool *ret_again)
{
	const struct request_head head = { .kind = REQUEST_KIND };
	_cleanup_buffer_ struct ss_buffer bytes = {};
	stack_requests stacks = {};
	bool only_registers = false;
	bool done = false;
	struct ss_error *error = list_stacks(work->interpreter,
					     work->snapshots[work->count - 1], &stacks,
					     &only_registers);

	ss_buffer_add(&bytes, &head, sizeof(head));
	ss_buffer_add(&bytes, stacks.items, stacks.count * sizeof(*stacks.items));
	if (!error && bytes.failed)
		error = ss_error_no_memory();
	if (!error && stacks.count && only_registers &&
	    ask_registers(work, &bytes, &done)) {
		*ret_again = true;
	} else if (!error && stacks.count) {
		*ret = true;
		error = done ? request_child(work) :
			       ss_sandbox_request(work->attempt, bytes.bytes, bytes.size);
	}
	ss_vector_free(&stacks);
	return error;
}

static struct ss_error *check_threads(const struct work *work)
{
	const struct ss_snapshot *last = work->snapshots[work->count - 1];

	if (ss_snapshot_task_count(last, SS_TASK_THREAD) > 0 ||
	    work->interpreter->options.may_be_empty)
		return NULL;
	return work->loaded ?
		       ss_error_new(SS_ERROR_INVALID, "the selection matches no thread") :
		       ss_error_new(SS_ERROR_NO_PROCESS,
				    "process %d no longer has threads",
				    ss_snapshot_process(last)->pid);
}

/* Unwinds until nothing more of the stacks can be had. *ret: a new child is needed. */
static struct ss_error *unwind(struct work *work, bool *ret)
{
	const struct interpreter *interpreter = work->interpreter;
	bool complete = work->attempt->may_request && interpreter->source->complete;
	struct ss_error *error = NULL;
	bool again = true;

	ss_sandbox_enter(work->attempt, SS_SANDBOX_UNWIND);
	if (complete)
		error = request_goroutines(work, ret);
	while (!error && !*ret && again) {
		again = false;
		clear_snapshots(work);
		for (size_t i = 0; i < interpreter->source->count && !error; i++)
			error = unwind_one(work, i);
		spend(work, SS_STEP_UNWIND);
		if (!error)
			error = check_threads(work);
		if (error || !complete || interpreter->settled)
			break;
		error = request_plan(work, ret);
		if (!error && !*ret)
			error = request_stacks(work, ret, &again);
		spend(work, SS_STEP_CAPTURE);
	}
	return error;
}

/* A recording has no names, but lock analysis needs them. */
static struct ss_error *symbolize(struct work *work)
{
	const struct ss_interpret_options *options = &work->interpreter->options;
	unsigned flags = options->for_recording ? SS_NO_SOURCE | SS_NO_INLINES :
						  options->symbolize_flags;
	struct ss_error *error = NULL;

	if (work->attempt->level != SS_SANDBOX_NAMES)
		return NULL;
	ss_sandbox_enter(work->attempt, SS_SANDBOX_SYMBOLIZE);
	for (size_t i = 0; i < work->count && !error; i++) {
		if (options->for_recording)
			ss_snapshot_identify_files(work->snapshots[i],
						   work->attempt->session);
		if (!options->for_recording || !options->no_waits)
			error = ss_snapshot_symbolize(work->snapshots[i],
						      work->attempt->session, flags);
	}
	spend(work, SS_STEP_SYMBOLIZE);
	return error;
}

/* Whether a time limit may have ended a wait for a lock, which then began again: other captures
   tell whether the owner is the same. */
static bool has_timed_owner(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_wait *wait =
			snapshot->tasks[SS_TASK_THREAD].items[i].wait;
		if (wait && wait->timed && wait->owner_tid)
			return true;
	}
	return false;
}

static struct ss_error *diagnose(struct work *work)
{
	const struct interpreter *interpreter = work->interpreter;
	const struct ss_interpret_options *options = &interpreter->options;
	const struct ss_diagnose_options diagnose_options = {
		.size = sizeof(diagnose_options),
		.waits = options->waits,
	};
	size_t last = work->count - 1;
	struct ss_error *error = NULL;

	if (options->no_waits || work->attempt->no_waits ||
	    work->attempt->level == SS_SANDBOX_PLACES)
		return NULL;
	ss_sandbox_enter(work->attempt, SS_SANDBOX_DIAGNOSE);
	for (size_t i = options->last_waits ? last : 0; i < work->count && !error; i++) {
		if ((i == last || interpreter->source->of_processes) &&
		    work->attempt->level == SS_SANDBOX_NAMES)
			error = ss_snapshot_add_related(
				work->snapshots[i], work->captures[i],
				work->attempt->session, options->symbolize_flags);
		if (!error)
			error = ss_snapshot_diagnose(work->snapshots[i],
						     &diagnose_options);
	}
	const bool compare = options->last_waits && !error &&
			     has_timed_owner(work->snapshots[last]);
	for (size_t i = 0; compare && i < last && !error; i++)
		error = ss_snapshot_diagnose(work->snapshots[i], &diagnose_options);
	if (!error && work->count > 1 && !interpreter->source->of_processes &&
	    !ss_snapshot_compare_goroutines(work->snapshots[last], work->snapshots[0]))
		error = ss_error_no_memory();
	spend(work, SS_STEP_DIAGNOSE);
	return error;
}

/* The snapshots, and advice about the last one. */
static struct ss_error *send(struct work *work)
{
	const struct ss_interpret_options *options = &work->interpreter->options;
	_cleanup_free_ char *advice =
		options->advise && work->attempt->level == SS_SANDBOX_NAMES ?
			options->advise(options->data, work->snapshots[work->count - 1],
					work->attempt->session) :
			NULL;
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_error *error = NULL;

	for (size_t i = 0; i < work->count && !error; i++)
		error = ss_snapshot_send(work->snapshots[i], work->attempt->output);
	ss_encode_text(&text, advice);
	if (!error && text.failed)
		error = ss_error_no_memory();
	if (error)
		return error;
	int result = ss_io_write_all(work->attempt->output, text.bytes, text.size);
	return result < 0 ? ss_error_new_errno(-result, "cannot write the snapshot") :
			    NULL;
}

static struct ss_error *finish(struct work *work)
{
	const struct ss_interpret_options *options = &work->interpreter->options;
	_cleanup_free_ char *problem = NULL;

	ss_sandbox_enter(work->attempt, SS_SANDBOX_OUTPUT);
	if (!options->write)
		return options->only_stacks ? NULL : send(work);
	problem = ss_interpret_problem(work->attempt, options->raw, module_path,
				       work->snapshots[work->count - 1]);
	const struct ss_interpreted interpreted = {
		.captures = (const struct ss_capture *const *)work->captures,
		.snapshots = (const struct ss_snapshot *const *)work->snapshots,
		.count = work->count,
		.level = work->attempt->level,
		.problem = problem,
		.output = work->attempt->output,
	};
	uint64_t value = 0;
	struct ss_error *error = options->write(options->data, &interpreted, &value);
	ss_sandbox_set_value(work->attempt, value);
	return error;
}

static struct ss_error *interpret(struct work *work)
{
	const struct interpreter *interpreter = work->interpreter;
	const struct ss_interpret_options *options = &interpreter->options;
	bool requested = false;
	struct ss_error *error = unwind(work, &requested);

	if (error || requested)
		return error;
	if (!options->only_stacks)
		error = symbolize(work);
	if (!error && !options->only_stacks)
		error = diagnose(work);
	if (!error && options->files)
		error = ss_file_requests_send(options->files, work->attempt, &requested);
	if (error || requested)
		return error;
	error = finish(work);
	spend(work, SS_STEP_FINISH);
	return error;
}

static struct ss_error *run_work(void *data, const struct ss_sandbox_attempt *attempt)
{
	struct interpreter *interpreter = data;
	struct ss_source *source = interpreter->source;
	bool requested = false;
	struct ss_error *error = NULL;
	_cleanup_(work_deinit) struct work work = {
		.interpreter = interpreter,
		.attempt = attempt,
		.captures = source->captures,
		.snapshots = calloc(source->count, sizeof(struct ss_snapshot *)),
		.begun_ns = ss_now_ns(),
	};

	if (!work.snapshots)
		return ss_error_no_memory();
	if (source->load) {
		error = source->load(source->data, attempt, &work.loaded);
		work.captures = &work.loaded;
		spend(&work, SS_STEP_CAPTURE);
		/* What is read of the process depends on its modules. */
		if (!error && interpreter->options.files)
			error = ss_file_requests_send(interpreter->options.files, attempt,
						      &requested);
	}
	return error || requested ? error : interpret(&work);
}

/* In the caller ------------------------------------------------------------- */

/* Reads a request of the confined process. False: it is not valid, or for files. */
static bool decode_request(const uint8_t *bytes, size_t size, struct ss_completion *ret,
			   struct ss_stack_request **ret_stacks)
{
	struct request_head head;
	struct ss_stack_request *stacks;

	if (size < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	bytes += sizeof(head);
	size -= sizeof(head);
	if (head.kind != REQUEST_KIND || head.jit > SS_JIT_CAPTURE)
		return false;
	*ret = (struct ss_completion){ .goroutines = (head.flags & FLAG_GOROUTINES) != 0,
				       .runtimes = (head.flags & FLAG_RUNTIMES) != 0,
				       .jit = (enum ss_jit_plan)head.jit };
	if (head.has_plan) {
		if (size != sizeof(ret->plan))
			return false;
		memcpy(&ret->plan, bytes, size); /* checked when it is executed */
		return ret->goroutines + ret->runtimes + (ret->jit != SS_JIT_NONE) == 1;
	}
	if (head.flags || head.jit || size % sizeof(*stacks) ||
	    size / sizeof(*stacks) > REQUEST_STACKS_MAX)
		return false;
	ret->count = size / sizeof(*stacks);
	stacks = calloc(ret->count + 1, sizeof(*stacks));
	if (!stacks)
		return false;
	memcpy(stacks, bytes, size);
	ret->stacks = *ret_stacks = stacks;
	return true;
}

static bool stops_threads(const struct ss_completion *completion)
{
	return ss_any(completion->count, i, completion->stacks[i].address == 0);
}

static void attach_cache(const struct interpreter *interpreter)
{
	const struct ss_interpret_options *options = &interpreter->options;

	for (size_t i = 0; i < interpreter->source->count && options->cache; i++) {
		if (interpreter->source->captures && options->owner_known)
			ss_cache_attach(options->cache, interpreter->source->captures[i],
					options->uid);
	}
}

static void complete(struct interpreter *interpreter,
		     const struct ss_completion *completion)
{
	struct ss_source *source = interpreter->source;
	bool plan = completion->goroutines || completion->runtimes ||
		    completion->jit != SS_JIT_NONE;

	if (!plan && completion->count == 0)
		return; /* only a new child was needed */
	interpreter->settled = true;
	if (!source->complete ||
	    (completion->goroutines && interpreter->asked_goroutines))
		return;
	bool stops = stops_threads(completion) && interpreter->stops > 0;
	bool done = source->complete(source->data, completion, stops);
	interpreter->stops -= stops;
	interpreter->plans += completion->runtimes;
	interpreter->asked_goroutines |= completion->goroutines;
	interpreter->settled = !done && !completion->goroutines;
	attach_cache(interpreter);
}

/* bytes are from the confined process: untrusted. */
static void answer_request(void *data, const void *bytes, size_t size)
{
	struct interpreter *interpreter = data;
	const struct ss_interpret_options *options = &interpreter->options;
	_cleanup_free_ struct ss_stack_request *stacks = NULL;
	struct ss_completion completion;

	if (decode_request(bytes, size, &completion, &stacks))
		complete(interpreter, &completion);
	else if (size > 0 && *(const uint8_t *)bytes == REQUEST_KIND)
		interpreter->settled = true; /* it is not valid */
	else if (options->files)
		ss_file_requests_answer(options->files, bytes, size);
}

/* Each answer stops threads, and its time does not count: so there is a limit. */
static size_t answer_question(void *data, const void *bytes, size_t size, void *ret,
			      size_t max)
{
	struct interpreter *interpreter = data;
	const struct ss_source *source = interpreter->source;
	_cleanup_free_ struct ss_stack_request *stacks = NULL;
	struct ss_completion completion;
	struct answer answer = {};

	if (max < sizeof(answer) || interpreter->settled || interpreter->stops == 0 ||
	    !source->captures || !decode_request(bytes, size, &completion, &stacks) ||
	    completion.count == 0)
		return 0;
	for (size_t i = 0; i < completion.count; i++) {
		if (completion.stacks[i].address != 0)
			return 0;
	}
	complete(interpreter, &completion);
	size_t added = ss_capture_copy_completion(source->captures[source->count - 1],
						  (uint8_t *)ret + sizeof(answer),
						  max - sizeof(answer));
	answer.stops = (uint8_t)SS_MIN(interpreter->stops, 255U);
	answer.settled = interpreter->settled;
	answer.in_place = added > 0;
	memcpy(ret, &answer, sizeof(answer));
	return sizeof(answer) + added;
}

static size_t answer_read(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct interpreter *interpreter = data;
	const struct ss_source *source = interpreter->source;
	uint32_t current = interpreter->shared->current;

	return current < source->count ?
		       source->read(source->data, current, address, bytes, size) :
		       0;
}

static bool answer_check(void *data, pid_t tid)
{
	const struct interpreter *interpreter = data;
	const struct ss_source *source = interpreter->source;
	uint32_t current = interpreter->shared->current;

	return tid > 0 && current < source->count &&
	       source->check(source->data, current, tid);
}

static bool must_stop(void *data)
{
	const struct interpreter *interpreter = data;

	return interpreter->options.stop(interpreter->options.data);
}

static void report_slow(void *data, enum ss_sandbox_step step)
{
	const struct interpreter *interpreter = data;

	interpreter->options.slow(interpreter->options.data, step);
}

static struct ss_error *read_output(int fd, struct ss_buffer *ret)
{
	struct stat status;

	if (fstat(fd, &status) != 0 || status.st_size > MESSAGE_MAX)
		return ss_error_new(SS_ERROR_INVALID,
				    "the analysis returned corrupted data");
	if (!ss_buffer_reserve(ret, (size_t)status.st_size))
		return ss_error_no_memory();
	ssize_t size = ss_io_pread(fd, ret->bytes, (size_t)status.st_size, 0);
	if (size < 0)
		return ss_error_new_errno((int)-size, "cannot read the snapshot");
	ret->size = (size_t)size;
	return NULL;
}

/* A child that ended with the finding of a sanitizer has returned nothing. */
static bool has_finding(const struct ss_sandbox_result *result)
{
#if defined(__SANITIZE_ADDRESS__)
	enum { SANITIZER_STATUS = 99 };

	for (size_t i = 0; i < result->failure_count; i++) {
		if (result->failures[i].cause == SS_SANDBOX_EXIT &&
		    result->failures[i].code == SANITIZER_STATUS)
			return true;
	}
#else
	(void)result;
#endif
	return false;
}

static struct ss_error *receive(struct interpreter *interpreter, int fd)
{
	struct ss_interpretation *result = interpreter->result;
	_cleanup_buffer_ struct ss_buffer bytes = {};
	size_t at = 0;
	struct ss_error *error = read_output(fd, &bytes);

	result->snapshots =
		calloc(interpreter->source->count, sizeof(*result->snapshots));
	if (!error && !result->snapshots)
		error = ss_error_no_memory();
	uint64_t memory = ss_snapshot_memory(bytes.size);
	for (size_t i = 0; i < interpreter->source->count && !error; i++) {
		error = ss_snapshot_receive((const uint8_t *)bytes.bytes, bytes.size, &at,
					    &memory, &result->snapshots[i]);
		result->count += !error;
	}
	if (error)
		return error;
	struct ss_cursor cursor = { .at = (const uint8_t *)bytes.bytes + at,
				    .end = (const uint8_t *)bytes.bytes + bytes.size };
	size_t size = ss_cursor_index(&cursor, ss_cursor_left(&cursor) + 1);
	const uint8_t *advice = ss_cursor_take(&cursor, size);
	if (advice && size) {
		result->advice = strndup((const char *)advice, size);
		error = result->advice ? NULL : ss_error_no_memory();
	}
	return error;
}

static struct ss_sandbox_options configure(const struct interpreter *interpreter)
{
	const struct ss_interpret_options *options = &interpreter->options;
	const struct ss_source *source = interpreter->source;
	struct ss_sandbox_options sandbox = ss_interpret_confine(options);

	sandbox.keep_modules |= source->of_processes;
	sandbox.max_requests += source->complete ? REQUESTS_MAX : 0;
	sandbox.answer = answer_request;
	sandbox.read = source->read ? answer_read : NULL;
	sandbox.check = source->check ? answer_check : NULL;
	sandbox.ask = source->complete ? answer_question : NULL;
	sandbox.stop = options->stop ? must_stop : NULL;
	sandbox.slow = options->slow ? report_slow : NULL;
	return sandbox;
}

static struct ss_error *run(struct interpreter *interpreter)
{
	struct ss_interpretation *result = interpreter->result;
	const struct ss_interpret_options *options = &interpreter->options;
	const struct ss_sandbox_options sandbox = configure(interpreter);
	struct ss_error *error = NULL;

	attach_cache(interpreter);
	error = ss_sandbox_run(&sandbox, run_work, interpreter, &result->sandbox);
	if (error)
		return error;
	for (size_t i = 0; i < SS_STEP_COUNT; i++)
		result->spent_ns[i] = interpreter->shared->spent_ns[i];
	result->settled = interpreter->settled;
	if (!options->write && !options->only_stacks && !has_finding(result->sandbox))
		error = receive(interpreter, result->sandbox->output);
	const struct ss_sandbox_attempt last = {
		.level = result->sandbox->level,
		.no_waits = result->sandbox->no_waits,
		.failures = result->sandbox->failures,
		.failure_count = result->sandbox->failure_count,
	};
	if (!error && !options->write && result->count)
		result->problem =
			ss_interpret_problem(&last, options->raw, module_path,
					     result->snapshots[result->count - 1]);
	return error;
}

static void shared_cleanup(struct shared **shared)
{
	if (*shared)
		(void)munmap(*shared, sizeof(**shared)); /* cannot fail */
}

struct ss_error *ss_interpret(struct ss_source *source,
			      const struct ss_interpret_options *options,
			      struct ss_interpretation **ret)
{
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result =
		calloc(1, sizeof(*result));
	_cleanup_(shared_cleanup) struct shared *shared = NULL;
	void *page = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct interpreter interpreter = { .source = source, .result = result };

	shared = page == MAP_FAILED ? NULL : page;
	if (!result || !shared)
		return ss_error_no_memory();
	memcpy(&interpreter.options, options,
	       SS_MIN(options->size, sizeof(interpreter.options)));
	interpreter.shared = shared;
	interpreter.stops = options->stops;
	interpreter.plans = options->plans;
	interpreter.settled = options->settled;
	interpreter.asked_goroutines = options->settled;
	struct ss_error *error = run(&interpreter);
	if (!error)
		*ret = take_ptr(result);
	return error;
}

void ss_interpretation_free(struct ss_interpretation *result)
{
	if (!result)
		return;
	for (size_t i = 0; i < result->count; i++)
		ss_snapshot_free(result->snapshots[i]);
	free(result->snapshots);
	ss_sandbox_result_free(result->sandbox);
	free(result->problem);
	free(result->advice);
	free(result);
}
