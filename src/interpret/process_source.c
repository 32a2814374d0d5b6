/*
 * Live processes as sources: one capture, several one after the other, or observed for a while.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "data/pipeline.h"
#include "diagnose/progress.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/search.h"
#include "base/vector.h"
#include "data/capture.h"
#include "data/futex.h"
#include "data/gather.h"
#include "data/snapshot_fields.h"
#include "interpret/interpret.h"
#include "process/spawn.h"
#include "process/target.h"

enum {
	PLANS_MAX = 3, /* of runtimes, for the captures of a series */
	EXTENDED_MAX = 4096,
	SAME_STACK = 64 << 10,
	OWNERS_MAX = 64,
	OWNER_ROUNDS = 8, /* owners of what owners wait for */
};

/* What all sources of live processes have. */
struct live {
	struct ss_process_source_options options;
	struct ss_capture_options capture_options;
	struct ss_target *target;
};

/* A live process --------------------------------------------------------------- */

static void watch(const struct live *live, bool begin)
{
	if (live->options.watch)
		live->options.watch(live->options.data, ss_target_pid(live->target),
				    begin);
}

/* After a failure, for instance because threads have ended, their stacks stay incomplete. */
static bool warn(const struct live *live, struct ss_error *error)
{
	_cleanup_error_ struct ss_error *owned = error;

	if (owned && live->options.warn)
		live->options.warn(live->options.data, owned);
	return owned != NULL;
}

static struct ss_error *take(const struct live *live,
			     const struct ss_capture_options *options,
			     struct ss_capture **ret)
{
	watch(live, true);
	struct ss_error *error = ss_capture_take(live->target, options, ret);
	watch(live, false);
	return error;
}

static bool gather(const struct live *live, struct ss_capture *capture,
		   const struct ss_gather_plan *plan)
{
	return !warn(live, ss_capture_gather(capture, live->target, plan));
}

/* Stops the threads whose registers are missing. Returns how many; *ret: their ids, to be freed. */
static size_t read_registers(const struct live *live, struct ss_capture *capture,
			     const struct ss_completion *completion, pid_t **ret)
{
	pid_t *tids = calloc(completion->count + 1, sizeof(*tids));
	size_t count = 0;

	for (size_t i = 0; tids && i < completion->count; i++) {
		if (completion->stacks[i].address == 0)
			tids[count++] = completion->stacks[i].tid;
	}
	*ret = tids;
	if (count == 0)
		return 0;
	watch(live, true);
	(void)warn(live, ss_capture_complete(capture, live->target,
					     &live->capture_options, tids, count));
	watch(live, false);
	return count;
}

static bool extend_stacks(const struct live *live, struct ss_capture *capture,
			  const struct ss_completion *completion)
{
	size_t grown = 0;

	(void)warn(live,
		   ss_capture_extend(capture, live->target, &live->capture_options,
				     completion->stacks, completion->count, &grown));
	return grown > 0;
}

/* One capture, or several ------------------------------------------------------ */

/* Threads that a capture has besides those that pass its filter. */
struct owners {
	ss_thread_filter *filter;
	void *data;
	pid_t tids[OWNERS_MAX];
	size_t count;
};

struct ss_process_source {
	struct live live;
	struct owners owners;
	char *refusal; /* why threads are only listed; or NULL */
	SS_VECTOR(struct ss_capture *) captures;
	struct ss_source last; /* the last capture */
	struct ss_source all;
	struct ss_late_reader *reader; /* of the last capture; or NULL */
	struct ss_gather_plan plan;    /* that is being executed */
	struct ss_gather_plan goroutine_plan;
	struct ss_gather_plan runtime_plan;
	bool has_goroutines;
	bool has_runtimes;
	SS_VECTOR(pid_t) stopped; /* threads that needed it; ascending */
	/* Of stacks of earlier captures that were extended: they may continue there again. */
	SS_VECTOR(struct ss_stack_request) extended;
	bool saved; /* there have been stacks to be saved: the process has a runtime */
	bool whole; /* the last ones that were saved lack nothing; untrusted */
};

static struct ss_capture **last_capture(struct ss_process_source *source)
{
	return &source->captures.items[source->captures.count - 1];
}

static void set_sources(struct ss_process_source *source)
{
	source->last.captures = last_capture(source);
	source->all.captures = source->captures.items;
	source->all.count = source->captures.count;
}

/* Takes over a capture. */
static struct ss_error *keep(struct ss_process_source *source, struct ss_capture *capture)
{
	struct ss_capture **slot = ss_vector_push(&source->captures);

	if (!slot) {
		ss_capture_free(capture);
		return ss_error_no_memory();
	}
	*slot = capture;
	set_sources(source);
	return NULL;
}

/* Completing ---------------------------------------------------------------- */

/* The threads that were stopped are stopped at once in later captures; without memory their stacks
   stay incomplete there. */
static bool complete_registers(struct ss_process_source *source,
			       const struct ss_completion *completion)
{
	_cleanup_free_ pid_t *tids = NULL;
	size_t count =
		read_registers(&source->live, *last_capture(source), completion, &tids);

	for (size_t i = 0; i < count; i++) {
		pid_t *slot = ss_vector_push(&source->stopped);
		if (slot)
			*slot = tids[i];
	}
	if (count)
		qsort(source->stopped.items, source->stopped.count,
		      sizeof(*source->stopped.items), ss_compare_pids);
	return count > 0;
}

/* Whether two stacks of a thread are the same one, whose depth has changed. */
static bool is_same_stack(const struct ss_stack_request *a,
			  const struct ss_stack_request *b)
{
	const uint64_t distance = a->address > b->address ? a->address - b->address :
							    b->address - a->address;

	return a->tid == b->tid && distance < SAME_STACK;
}

/* Notes what was extended, for later captures: each stack once. */
static void note_extended(struct ss_process_source *source,
			  const struct ss_stack_request *request)
{
	struct ss_stack_request *slot = NULL;

	for (size_t i = 0; i < source->extended.count && !slot; i++) {
		if (is_same_stack(&source->extended.items[i], request))
			slot = &source->extended.items[i];
	}
	if (!slot && source->extended.count < EXTENDED_MAX)
		slot = ss_vector_push(&source->extended);
	if (slot) /* or that stack ends early there */
		*slot = *request;
}

static bool extend(struct ss_process_source *source,
		   const struct ss_completion *completion)
{
	bool grown = extend_stacks(&source->live, *last_capture(source), completion);

	for (size_t i = 0; grown && i < completion->count; i++)
		note_extended(source, &completion->stacks[i]);
	return grown;
}

/* The same for another capture, in which most of these threads have not run. */
static void extend_again(struct ss_process_source *source)
{
	size_t grown = 0;

	if (source->extended.count)
		(void)warn(&source->live,
			   ss_capture_extend(*last_capture(source), source->live.target,
					     &source->live.capture_options,
					     source->extended.items,
					     source->extended.count, &grown));
}

static void add_related(struct ss_process_source *source)
{
	if (!source->live.options.no_related)
		ss_capture_add_related(*last_capture(source), source->live.target);
}

/* Captures again, with the plan. If that fails, the first capture stays. */
static bool capture_again(struct ss_process_source *source)
{
	struct ss_capture *capture = NULL;

	source->live.capture_options.plan = &source->plan;
	source->live.capture_options.previous = NULL; /* all that run are stopped */
	source->live.capture_options.modules = *last_capture(source);
	struct ss_error *error =
		take(&source->live, &source->live.capture_options, &capture);
	source->live.capture_options.plan = NULL;
	source->live.capture_options.modules = NULL;
	if (warn(&source->live, error))
		return false;
	ss_late_reader_free(take_ptr(source->reader));
	ss_capture_free(*last_capture(source));
	*last_capture(source) = capture;
	add_related(source);
	return true;
}

/* What JIT compilers registered is read without a stop first: it is needed together with
   the stacks only if there is something. The memory of a process that is held does not
   change. */
static bool use_plan(struct ss_process_source *source,
		     const struct ss_completion *completion)
{
	source->plan = completion->plan;
	if (completion->goroutines) {
		source->goroutine_plan = completion->plan;
		source->has_goroutines = true;
	}
	if (completion->runtimes) {
		source->runtime_plan = completion->plan;
		source->has_runtimes = true;
	}
	if (!source->live.options.held &&
	    (completion->jit == SS_JIT_CAPTURE || completion->runtimes))
		return source->live.capture_options.mode != SS_MODE_NO_STOP &&
		       capture_again(source);
	return gather(&source->live, *last_capture(source), &source->plan);
}

static bool complete(void *data, const struct ss_completion *completion, bool may_stop)
{
	struct ss_process_source *source = data;

	if (completion->goroutines || completion->runtimes ||
	    completion->jit != SS_JIT_NONE)
		return use_plan(source, completion);
	bool stopped = may_stop && complete_registers(source, completion);
	return extend(source, completion) || stopped;
}

/* For the frames of runtimes, while the stacks are interpreted. */
static struct ss_late_reader *get_reader(struct ss_process_source *source)
{
	if (!source->reader)
		(void)warn(&source->live,
			   ss_late_reader_new(*last_capture(source), source->live.target,
					      &source->reader));
	return source->reader;
}

static size_t read_memory(void *data, size_t index, uint64_t address, void *bytes,
			  size_t size)
{
	struct ss_late_reader *reader = get_reader(data);

	(void)index; /* there is one */
	return reader ? ss_late_reader_read(reader, address, bytes, size) : 0;
}

/* Threads of a process that is held do not run. */
static bool check_thread(void *data, size_t index, pid_t tid)
{
	struct ss_process_source *source = data;
	struct ss_late_reader *reader = get_reader(source);

	(void)index;
	return reader && (source->live.options.held || ss_late_reader_check(reader, tid));
}

/* Taking --------------------------------------------------------------------- */

static void report(const struct live *live, const struct ss_error *refusal)
{
	if (live->options.captured)
		live->options.captured(live->options.data, live->target, refusal);
}

/* If access to the process was refused, captures names and states of its threads instead. */
static struct ss_error *list_threads(struct ss_process_source *source, pid_t pid,
				     struct ss_error *refusal)
{
	_cleanup_error_ struct ss_error *owned = refusal;
	struct ss_capture *capture = NULL;

	if (source->live.options.no_list || !ss_error_is_refusal(owned))
		return take_ptr(owned);
	ss_target_close(take_ptr(source->live.target));
	_cleanup_error_ struct ss_error *error =
		ss_target_open_listing(pid, &source->live.target);
	if (!error)
		error = ss_capture_take(source->live.target,
					&source->live.capture_options, &capture);
	if (error)
		return take_ptr(owned);
	source->last.complete = NULL;
	source->refusal = strdup(ss_error_message(refusal));
	report(&source->live, refusal);
	error = keep(source, capture);
	return source->refusal || error ? take_ptr(error) : ss_error_no_memory();
}

/* Owners ---------------------------------------------------------------------- */

static bool has_tid(const struct owners *owners, pid_t tid)
{
	return ss_any(owners->count, i, owners->tids[i] == tid);
}

static bool accepts(void *data, pid_t tid, const char *name, char state)
{
	const struct owners *owners = data;

	return owners->filter(owners->data, tid, name, state) || has_tid(owners, tid);
}

/* Most words where an owner would be are something else. */
static bool is_thread(const struct ss_process_source *source, pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	return tid > 1 && ss_target_read_task(source->live.target, tid, "comm", &text);
}

/* Adds the threads that the locks of a capture name. Ids of another pid namespace are not
   followed. */
static void add_owners(struct ss_process_source *source, const struct ss_capture *capture)
{
	struct owners *owners = &source->owners;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const struct ss_lock_copy *lock = &thread->lock;
		struct ss_futex futex;
		if (lock->size == 0 || !ss_futex_parse(&thread->syscall, &futex) ||
		    (thread->inner_tid && thread->inner_tid != thread->tid))
			continue;
		for (size_t k = 0; k < SS_FUTEX_OWNERS && owners->count < OWNERS_MAX;
		     k++) {
			pid_t tid = (pid_t)ss_futex_owner(&futex, k, lock->address,
							  lock->bytes, lock->size);
			if (!has_tid(owners, tid) && is_thread(source, tid))
				owners->tids[owners->count++] = tid;
		}
	}
}

/* Whether the owners of locks are known only from the stacks and the memory of all threads. */
static bool has_runtime(const struct ss_capture *capture)
{
	return ss_any(capture->modules.count, i,
		      ss_path_is_of_runtime(capture->modules.items[i]->pub.path));
}

/* Captures again. False: the capture stays as it was. */
static bool take_again(struct ss_process_source *source, struct ss_capture **capture)
{
	struct ss_capture *more = NULL;

	if (warn(&source->live, ss_capture_take(source->live.target,
						&source->live.capture_options, &more)))
		return false;
	ss_capture_free(*capture);
	*capture = more;
	return true;
}

/* Captures again, as long as locks name other threads; with a runtime, once with all threads, unless
   each of them would be stopped. After a failure the capture stays as it was. */
static void take_owners(struct ss_process_source *source, struct ss_capture **capture)
{
	struct ss_capture_options *options = &source->live.capture_options;

	if (!source->live.options.owners || !options->filter)
		return;
	if (options->mode != SS_MODE_STOP && options->mode != SS_MODE_LIVE &&
	    has_runtime(*capture)) {
		ss_thread_filter *filter = options->filter;
		options->filter = NULL;
		if (!take_again(source, capture))
			options->filter = filter;
		return;
	}
	source->owners = (struct owners){ .filter = options->filter,
					  .data = options->filter_data };
	options->filter = accepts;
	options->filter_data = &source->owners;
	for (int i = 0; i < OWNER_ROUNDS; i++) {
		const size_t before = source->owners.count;
		add_owners(source, *capture);
		if (source->owners.count == before || !take_again(source, capture))
			return;
	}
}

static struct ss_error *take_first(struct ss_process_source *source, pid_t pid)
{
	struct ss_capture_options *options = &source->live.capture_options;
	struct ss_capture *capture = NULL;
	struct ss_error *error =
		source->live.target ? NULL : ss_target_open(pid, &source->live.target);

	if (!error)
		error = ss_capture_take(source->live.target, options, &capture);
	if (options->filter && source->live.options.needs_all &&
	    source->live.options.needs_all(options->filter_data)) {
		ss_error_free(error);
		ss_capture_free(take_ptr(capture));
		options->filter = NULL;
		error = ss_capture_take(source->live.target, options, &capture);
	}
	if (error)
		return list_threads(source, pid, error);
	take_owners(source, &capture);
	error = keep(source, capture);
	if (error)
		return error;
	add_related(source);
	report(&source->live, NULL);
	return NULL;
}

static void set_source(struct ss_process_source *source)
{
	source->last = (struct ss_source){
		.data = source,
		.count = 1,
		.complete = complete,
		.read = read_memory,
		.check = check_thread,
	};
	source->all = (struct ss_source){ .data = source };
}

struct ss_error *ss_process_source_new(pid_t pid,
				       const struct ss_process_source_options *options,
				       struct ss_process_source **ret)
{
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source =
		calloc(1, sizeof(*source));

	if (!source)
		return ss_error_no_memory();
	memcpy(&source->live.options, options,
	       SS_MIN(options->size, sizeof(source->live.options)));
	source->live.capture_options = *options->capture;
	source->live.target = options->target;
	set_source(source);
	if (options->watch)
		options->watch(options->data, pid, true);
	struct ss_error *error = take_first(source, pid);
	if (options->watch)
		options->watch(options->data, pid, false);
	if (!error)
		*ret = take_ptr(source);
	return error;
}

void ss_process_source_free(struct ss_process_source *source)
{
	if (!source)
		return;
	ss_late_reader_free(source->reader);
	for (size_t i = 0; i < source->captures.count; i++)
		ss_capture_free(source->captures.items[i]);
	ss_vector_free(&source->captures);
	ss_vector_free(&source->stopped);
	ss_vector_free(&source->extended);
	if (!source->live.options.target)
		ss_target_close(source->live.target);
	free(source->refusal);
	free(source);
}

struct ss_source *ss_process_source_last(struct ss_process_source *source)
{
	return &source->last;
}

struct ss_source *ss_process_source_all(struct ss_process_source *source)
{
	return &source->all;
}

struct ss_target *ss_process_source_target(struct ss_process_source *source)
{
	return source->live.target;
}

/* Several captures ------------------------------------------------------------ */

/* Whether nothing more of the stacks could be had by another attempt, as long as no thread
   runs. */
static bool is_whole(const struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		if (thread->native_reason || thread->missing ||
		    thread->end == SS_END_UNREADABLE)
			return false;
	}
	return true;
}

/* Writes what ss_capture_add_stacks() reads, if the process has a runtime. */
static struct ss_error *save(void *data, const struct ss_interpreted *interpreted,
			     uint64_t *ret_value)
{
	const struct ss_snapshot *snapshot = interpreted->snapshots[0];

	(void)data;
	*ret_value = is_whole(snapshot);
	return ss_snapshot_runtime(snapshot, 0) ?
		       ss_snapshot_send(snapshot, interpreted->output) :
		       NULL;
}

/* Reads the functions of runtimes before the process goes on, and completes the stacks of the
   first capture. At worst there are native frames only; once there were stacks, that is a
   problem of one of many captures. */
static struct ss_error *save_stacks(struct ss_process_source *source,
				    const struct ss_interpret_options *options,
				    bool first)
{
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	struct ss_interpret_options given = *options;
	bool any = false;

	given.only_stacks = true;
	given.many = true;
	given.native = true;
	given.write = save;
	given.max_plans = PLANS_MAX;
	given.plans = first ? 0 : source->has_runtimes;
	given.goroutines = first && options->goroutines;
	given.stops = first ? options->stops : 0;
	struct ss_error *error = ss_interpret(&source->last, &given, &result);
	ss_late_reader_free(take_ptr(source->reader));
	if (error)
		return error;
	error = ss_capture_add_stacks(*last_capture(source), result->sandbox->output,
				      &any);
	(void)warn(&source->live, error);
	source->saved |= any;
	source->whole = result->sandbox->value != 0;
	return NULL;
}

/* A runtime that is not initialised yet counts as one. Of a process that has not run since,
   the stacks are known. */
static bool must_save(const struct ss_process_source *source)
{
	const struct ss_capture *capture =
		source->captures.items[source->captures.count - 1];

	if (!source->saved)
		return ss_capture_has_new_files(capture);
	return !source->whole || !ss_capture_has_stacks(capture);
}

struct ss_error *
ss_process_source_begin_series(struct ss_process_source *source,
			       const struct ss_interpret_options *options)
{
	return save_stacks(source, options, true);
}

/* The threads whose registers were needed the first time are stopped together with those that
   run. */
struct ss_error *ss_process_source_take(struct ss_process_source *source,
					const struct ss_interpret_options *options)
{
	struct ss_capture_options *capture_options = &source->live.capture_options;
	struct ss_capture *capture = NULL;

	capture_options->previous = *last_capture(source);
	capture_options->stop = source->stopped.items;
	capture_options->stop_count = source->stopped.count;
	capture_options->plan = source->has_runtimes ? &source->runtime_plan : NULL;
	watch(&source->live, true);
	struct ss_error *error =
		ss_capture_take(source->live.target, capture_options, &capture);
	if (!error && source->has_goroutines)
		(void)warn(&source->live, ss_capture_gather(capture, source->live.target,
							    &source->goroutine_plan));
	watch(&source->live, false);
	capture_options->plan = NULL;
	if (!error)
		error = keep(source, capture);
	if (!error)
		extend_again(source);
	if (error || !must_save(source))
		return error;
	error = save_stacks(source, options, false);
	if (error && ss_error_code(error) != SS_ERROR_INTERRUPTED) {
		(void)warn(&source->live, error);
		error = NULL;
	}
	if (error)
		ss_capture_free(source->captures.items[--source->captures.count]);
	set_sources(source);
	return error;
}

uint64_t ss_process_source_size(const struct ss_process_source *source)
{
	uint64_t size = 0;

	for (size_t i = 0; i < source->captures.count; i++)
		size += ss_capture_size(source->captures.items[i]);
	return size;
}

void ss_process_source_end_series(struct ss_process_source *source)
{
	add_related(source);
}

/*
 * Observed for a while ----------------------------------------------------------
 *
 * At little cost to the process: scheduler counters and captures of all threads at the beginning
 * and at the end, and a few captures of running threads between.
 */

enum {
	STEPS = 6,
	CAPTURES = 3 + 3 * STEPS,
	LIMITED_MAX = 32,
	/* Between captures that are taken once more: a few time slices of the scheduler, and
	   of Python's lock */
	REPEAT_NS = 20 * 1000 * 1000,
};

/* A goroutine that waits for a lock for longer than this is blocked. */
#define BLOCKED_NS SS_NS_PER_SECOND

struct ss_observation {
	struct live live;
	struct ss_activity *before;
	struct ss_activity *after;
	struct ss_capture *captures[CAPTURES]; /* the last one has all threads */
	struct ss_source source;
	struct ss_late_reader *first; /* of the first capture; or NULL */
	struct ss_late_reader *last;
	struct ss_run_counts counts; /* of processes that it led to at the beginning */
	bool repeated;
	pid_t limited[LIMITED_MAX]; /* see list_limited() */
	size_t limited_count;
};

static void free_captures(struct ss_observation *observation)
{
	ss_late_reader_free(take_ptr(observation->first));
	ss_late_reader_free(take_ptr(observation->last));
	for (size_t i = 0; i < observation->source.count; i++)
		ss_capture_free(observation->captures[i]);
	observation->source.count = 0;
}

void ss_observation_free(struct ss_observation *observation)
{
	if (!observation)
		return;
	free_captures(observation);
	ss_vector_free(&observation->counts);
	ss_activity_free(observation->before);
	ss_activity_free(observation->after);
	ss_target_close(observation->live.target);
	free(observation);
}

static bool is_running(void *data, pid_t tid, const char *name, char state)
{
	(void)data;
	(void)tid;
	(void)name;
	return state == 'R';
}

static bool is_limited(void *data, pid_t tid, const char *name, char state)
{
	const struct ss_observation *observation = data;

	(void)name;
	(void)state;
	return ss_any(observation->limited_count, i, observation->limited[i] == tid);
}

/* Whether there is code that no file has: what a runtime needs of threads that execute it would be copied
   for each sample. */
static bool has_generated_code(const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->areas.count; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		if (area->prot & PROT_EXEC && area->module < 0 && area->name[0] != '[')
			return true;
	}
	return false;
}

/* The threads that waited with a time limit at the beginning: what is left of it in several samples
   tells whether only the limit ends the waits. They are not stopped for that. */
static void list_limited(struct ss_observation *observation,
			 const struct ss_capture *capture)
{
	const enum ss_mode mode = observation->live.capture_options.mode;

	observation->limited_count = 0;
	if (mode == SS_MODE_STOP || mode == SS_MODE_LIVE || has_generated_code(capture))
		return;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		struct ss_futex futex;
		if (observation->limited_count < LIMITED_MAX &&
		    ss_futex_parse(&thread->syscall, &futex) && futex.timed)
			observation->limited[observation->limited_count++] = thread->tid;
	}
}

static struct ss_error *observe(struct ss_observation *observation,
				ss_thread_filter *filter,
				const struct ss_gather_plan *plan)
{
	struct ss_capture_options options = observation->live.capture_options;
	size_t *count = &observation->source.count;

	options.filter = filter;
	options.filter_data = observation;
	options.plan = plan;
	if (filter == is_limited)
		options.mode = SS_MODE_NO_STOP;
	struct ss_error *error =
		take(&observation->live, &options, &observation->captures[*count]);
	*count += !error;
	return error;
}

/*
 * Pauses between captures are not equal: a program that does the same again and again would otherwise be found
 * in the same places if one of its rounds, or some, take as long as a pause. index: of STEPS + 1.
 */
static void pause_before(struct ss_observation *observation, int index, uint64_t pause_ns,
			 const struct ss_gather_plan *plan)
{
	static const unsigned char percent[STEPS + 1] = {
		100, 62, 138, 81, 119, 73, 127
	};
	const uint64_t duration_ns = pause_ns * percent[index] / 100;
	const uint64_t first_ns = duration_ns * 38 / 100;

	ss_sleep_ns(first_ns);
	if (observation->limited_count)
		ss_error_free(observe(observation, is_limited, plan));
	ss_sleep_ns(duration_ns - first_ns);
}

/* The captures, and the counters at the end. Of those between, errors are ignored: perhaps no
   thread runs. */
static struct ss_error *capture_all(struct ss_observation *observation, uint64_t pause_ns,
				    const struct ss_gather_plan *plan)
{
	struct ss_error *error = observe(observation, NULL, plan);
	const bool related = !observation->live.options.no_related;

	if (error)
		return error;
	list_limited(observation, observation->captures[0]);
	if (related && !observation->repeated) {
		ss_capture_add_related(observation->captures[0],
				       observation->live.target);
		ss_capture_take_counts(observation->captures[0], &observation->counts);
	}
	for (int i = 0; i < STEPS; i++) {
		pause_before(observation, i, pause_ns, plan);
		ss_error_free(observe(observation, is_running, plan));
		if (observation->limited_count)
			ss_error_free(observe(observation, is_limited, plan));
	}
	pause_before(observation, STEPS, pause_ns, plan);
	error = observe(observation, NULL, plan);
	if (!error)
		error = ss_activity_take(observation->live.target, &observation->after);
	if (!error && related) {
		struct ss_capture *last =
			observation->captures[observation->source.count - 1];
		ss_capture_add_related(last, observation->live.target);
		ss_capture_compare_counts(last, &observation->counts);
	}
	return error;
}

/* Takes all captures once more, in a shorter time, with a plan: what is needed of threads that
   run is copied with their stacks. After a failure the observation stays as it was. */
static bool repeat(struct ss_observation *observation, const struct ss_gather_plan *plan)
{
	struct ss_observation repeated = *observation;

	/* Otherwise the stops of the first captures would count as activity. */
	if (observation->repeated ||
	    observation->live.capture_options.mode != SS_MODE_AUTO)
		return false;
	observation->repeated = repeated.repeated = true;
	repeated.source.count = 0;
	repeated.after = NULL;
	repeated.first = repeated.last = NULL;
	if (warn(&observation->live, capture_all(&repeated, REPEAT_NS, plan))) {
		free_captures(&repeated);
		ss_activity_free(repeated.after);
		return false;
	}
	free_captures(observation);
	ss_activity_free(observation->after);
	observation->after = repeated.after;
	memcpy(observation->captures, repeated.captures, sizeof(repeated.captures));
	observation->source.count = repeated.source.count;
	return true;
}

/* Copies what describes goroutines twice, to tell which of them move. */
static bool gather_goroutines(const struct ss_observation *observation,
			      const struct ss_gather_plan *plan)
{
	(void)gather(&observation->live, observation->captures[0], plan);
	ss_sleep_ns(BLOCKED_NS);
	return gather(&observation->live,
		      observation->captures[observation->source.count - 1], plan);
}

static bool complete_observation(void *data, const struct ss_completion *completion,
				 bool may_stop)
{
	struct ss_observation *observation = data;
	struct ss_capture *last = observation->captures[observation->source.count - 1];
	_cleanup_free_ pid_t *tids = NULL;

	if (completion->goroutines)
		return gather_goroutines(observation, &completion->plan);
	if (completion->runtimes || completion->jit == SS_JIT_CAPTURE)
		return repeat(observation, &completion->plan);
	if (completion->jit == SS_JIT_LOOK)
		return gather(&observation->live, last, &completion->plan);
	bool stopped = may_stop &&
		       read_registers(&observation->live, last, completion, &tids) > 0;
	return extend_stacks(&observation->live, last, completion) || stopped;
}

static struct ss_late_reader *
get_observed_reader(const struct ss_observation *observation, size_t index,
		    struct ss_late_reader **reader)
{
	if (!*reader)
		ss_error_free(ss_late_reader_new(observation->captures[index],
						 observation->live.target, reader));
	return *reader;
}

/* A thread that has not run since the first capture has the same frames in all of them. */
static size_t read_observed(void *data, size_t index, uint64_t address, void *bytes,
			    size_t size)
{
	struct ss_observation *observation = data;
	struct ss_late_reader *reader =
		get_observed_reader(observation, 0, &observation->first);

	(void)index;
	return reader ? ss_late_reader_read(reader, address, bytes, size) : 0;
}

static bool check_observed(void *data, size_t index, pid_t tid)
{
	struct ss_observation *observation = data;
	size_t last = observation->source.count - 1;
	struct ss_late_reader *reader =
		index == last ?
			get_observed_reader(observation, last, &observation->last) :
			get_observed_reader(observation, 0, &observation->first);

	return reader && ss_late_reader_check(reader, tid);
}

struct ss_error *ss_observation_new(pid_t pid, uint64_t time_ns,
				    const struct ss_process_source_options *options,
				    struct ss_observation **ret)
{
	_cleanup_(ss_observation_cleanup) struct ss_observation *observation =
		calloc(1, sizeof(*observation));

	if (!observation)
		return ss_error_no_memory();
	memcpy(&observation->live.options, options,
	       SS_MIN(options->size, sizeof(observation->live.options)));
	observation->live.capture_options = *options->capture;
	observation->source = (struct ss_source){
		.data = observation,
		.captures = observation->captures,
		.complete = complete_observation,
		.read = read_observed,
		.check = check_observed,
	};
	struct ss_error *error = ss_target_open(pid, &observation->live.target);
	if (!error)
		error = ss_activity_take(observation->live.target, &observation->before);
	if (!error)
		error = capture_all(observation, time_ns / (STEPS + 1), NULL);
	if (error)
		return error;
	report(&observation->live, NULL);
	*ret = take_ptr(observation);
	return NULL;
}

struct ss_source *ss_observation_source(struct ss_observation *observation)
{
	return &observation->source;
}

struct ss_target *ss_observation_target(struct ss_observation *observation)
{
	return observation->live.target;
}

struct ss_error *ss_observation_compare(const struct ss_observation *observation,
					const struct ss_interpretation *result,
					struct ss_progress **ret)
{
	return ss_progress_new(observation->before, observation->after,
			       (const struct ss_snapshot *const *)result->snapshots,
			       result->count, ret);
}

/* One snapshot ---------------------------------------------------------------- */

void ss_interpret_as_owner(const struct ss_target *target,
			   struct ss_interpret_options *options)
{
	_cleanup_error_ struct ss_error *error =
		ss_target_owner(target, &options->uid, &options->gid);

	options->owner_known = !error;
}

struct ss_error *ss_snapshot_take(pid_t pid, const struct ss_snapshot_options *options,
				  struct ss_snapshot **ret)
{
	struct ss_snapshot_options given = { .size = 0 };
	_cleanup_(ss_process_source_cleanup) struct ss_process_source *source = NULL;
	_cleanup_(ss_interpretation_cleanup) struct ss_interpretation *result = NULL;
	struct ss_snapshot *snapshot = NULL;

	if (options)
		memcpy(&given, options, SS_MIN(options->size, sizeof(given)));
	const struct ss_capture_options capture = {
		.size = sizeof(capture),
		.mode = given.mode,
		.timeout_ms = given.freeze_ms,
		.max_stack = given.max_stack,
		.max_total = given.max_total,
		.filter = given.filter,
		.filter_data = given.filter_data,
		.no_waits = given.no_waits,
		.max_frames = given.max_frames,
	};
	struct ss_pipeline defaults = {
		.source = { .size = sizeof(defaults.source),
			    .capture = &capture,
			    .no_related = given.no_waits },
		.interpret = {
			.size = sizeof(defaults.interpret),
			.max_frames = given.max_frames,
			.native = given.native,
			.tasks = !given.no_tasks,
			.goroutines = !given.no_tasks,
			.raw = given.raw,
			.no_waits = given.no_waits,
			.symbolize_flags = given.symbolize_flags,
			.debug_dir = given.debug_dir,
			.sysroot = given.sysroot,
			.timeout_ms = given.timeout_ms,
			.stops = SS_INTERPRET_STOPS,
		},
	};
	struct ss_pipeline *pipeline = given.pipeline ? given.pipeline : &defaults;
	struct ss_error *error = ss_process_source_new(pid, &pipeline->source, &source);
	if (error)
		return error;
	ss_interpret_as_owner(source->live.target, &pipeline->interpret);
	error = ss_interpret(&source->last, &pipeline->interpret, &result);
	if (error)
		return error;
	if (result->count > 0)
		snapshot = take_ptr(result->snapshots[0]);
	else if (!pipeline->interpret.write)
		return ss_error_new(SS_ERROR_SYSTEM, "the analysis has no result");
	if (given.pipeline)
		pipeline->result = take_ptr(result);
	else if (snapshot)
		snapshot->problem = source->refusal ? take_ptr(source->refusal) :
						      take_ptr(result->problem);
	*ret = snapshot;
	return NULL;
}
