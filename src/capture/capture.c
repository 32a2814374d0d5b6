#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/search.h"
#include "capture/attempt.h"
#include "capture/freeze.h"
#include "capture/result.h"
#include "capture/tasks.h"
#include "data/capture.h"
#include "data/gather.h"
#include "data/pipeline.h"
#include "process/files.h"
#include "process/objects.h"
#include "process/own_thread.h"
#include "process/process_memory.h"
#include "process/target.h"

/*
 * Copies more of stacks, after the capture and without stopping a thread, if unwinding led
 * beyond what was copied.
 */

enum {
	PAGE = 4096,
	/* Other memory than a stack may follow, so more is copied only if it was needed. */
	FIRST = 1 << 20,
	GROWTH = 8,
	PLAN_MS = 5000, /* for 128 MiB; a page may have been taken away */
};

struct extension {
	struct ss_capture *capture;
	const struct ss_target *target;
	const struct ss_capture_options *options;
	struct ss_process_memory memory;
	struct ss_buffer text;
	size_t left; /* of max_total */
	unsigned waits_left;
};

/* A child of the tracer may read the memory of a held process with its descriptor only: for
   Yama it is no relative of the process. */
static int open_memory(const struct ss_target *target, pid_t tid)
{
	return target->held_mem_fd >= 0 ? fcntl(target->held_mem_fd, F_DUPFD_CLOEXEC, 3) :
					  ss_target_open_task(target, tid, "mem");
}

static void extension_deinit(struct extension *e)
{
	close_cleanup(&e->memory.mem_fd);
	close_cleanup(&e->memory.pagemap_fd);
	ss_buffer_deinit(&e->text);
}

/* The copy to make or to replace by a larger one, or NULL. */
static struct ss_stack_copy *find_slot(struct ss_capture_thread *thread, uint64_t address)
{
	struct ss_stack_copy *free = NULL;

	for (size_t i = SS_STACK_FOUND; i < SS_STACK_COPIES; i++) {
		struct ss_stack_copy *copy = &thread->stacks[i];
		/* Frames may be large. */
		if (copy->truncated && address - copy->address < copy->size + FIRST)
			return copy;
		if (!copy->bytes && !free)
			free = copy;
	}
	return free;
}

/* What to copy. size 0: nothing. */
static struct ss_stack_copy plan(const struct extension *e,
				 const struct ss_stack_copy *old, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(e->capture, address);
	size_t max = old->bytes ? old->size * GROWTH : FIRST;
	const unsigned access = PROT_READ | PROT_WRITE;

	/* A limit that the caller has set holds. */
	if (!area || area->shared || (area->prot & access) != access ||
	    e->options->max_deep <= e->options->max_stack)
		return (struct ss_stack_copy){};
	max = SS_MIN(SS_MIN(max, e->options->max_deep), old->size + e->left) / PAGE *
	      PAGE;
	uint64_t from = old->bytes ? old->address : address & ~(uint64_t)(PAGE - 1);
	size_t whole = area->end - from;
	return (struct ss_stack_copy){ .address = from,
				       .size = SS_MIN(whole, max),
				       .truncated = whole > max };
}

static bool is_still(struct extension *e, const struct ss_capture_thread *thread)
{
	return ss_still_check(&(struct ss_still){ .capture = e->capture,
						  .target = e->target,
						  .memory = &e->memory,
						  .text = &e->text,
						  .waits_left = &e->waits_left },
			      thread);
}

/* Its memory belongs to a capture that is freed with the first one. NULL: no memory. */
static struct ss_capture *allocate(struct ss_stack_copy *copy, uint8_t **absent)
{
	size_t pages = copy->size / PAGE + 2;
	size_t bitmap = (pages + 7) / 8;
	struct ss_capture *owner = ss_capture_new();
	size_t size = copy->size + (bitmap + PAGE - 1) / PAGE * PAGE;

	if (!owner)
		return NULL;
	uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED) {
		ss_capture_free(owner);
		return NULL;
	}
	owner->arena = bytes;
	owner->arena_size = size;
	copy->bytes = bytes;
	*absent = bytes + copy->size;
	return owner;
}

/* Frees the memory of a copy that a larger one replaces, if it is its own. */
static void drop(struct ss_capture *capture, const struct ss_stack_copy *copy)
{
	for (struct ss_capture **at = &capture->complement; *at;
	     at = &(*at)->complement) {
		struct ss_capture *owner = *at;
		if (!copy->bytes || owner->arena != copy->bytes ||
		    owner->threads.count > 0)
			continue;
		*at = take_ptr(owner->complement);
		ss_capture_free(owner);
		return;
	}
}

/* The copy may continue others. */
static void join(struct ss_capture_thread *thread, const struct ss_stack_copy *copy)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		struct ss_stack_copy *other = &thread->stacks[i];
		uint64_t end = other->address + other->size;
		if (other != copy && other->truncated && end >= copy->address &&
		    end < copy->address + copy->size)
			other->truncated = false;
	}
}

static bool extend(struct extension *e, const struct ss_stack_request *request)
{
	struct ss_capture_thread *thread =
		ss_capture_find_thread(e->capture, request->tid);
	struct ss_stack_copy *slot = thread ? find_slot(thread, request->address) : NULL;
	uint8_t *absent;

	if (request->address == 0 || !slot || thread->live || !is_still(e, thread))
		return false;
	struct ss_stack_copy copy = plan(e, slot, request->address);
	if (copy.truncated && copy.size == (slot->size + e->left) / PAGE * PAGE)
		thread->reason = SS_TOTAL_REASON;
	if (copy.size <= slot->size || request->address - copy.address >= copy.size)
		return false;
	_cleanup_(ss_capture_cleanup) struct ss_capture *owner = allocate(&copy, &absent);
	if (!owner)
		return false;
	struct ss_piece piece = {
		.address = copy.address,
		.bytes = owner->arena,
		.size = copy.size,
		.absent = absent,
		.zeroed = true,
	};
	ss_process_memory_read_present(&e->memory, &piece, 1);
	if (piece.done == 0 || !is_still(e, thread))
		return false;
	copy.truncated &= piece.done == copy.size;
	copy.size = piece.done;
	copy.absent = piece.has_absent ? absent : NULL;
	size_t more = copy.size - SS_MIN(slot->size, copy.size);
	e->left -= SS_MIN(more, e->left);
	e->capture->process.copied_bytes += more;
	drop(e->capture, slot);
	*slot = copy;
	join(thread, slot);
	owner->complement = e->capture->complement;
	e->capture->complement = take_ptr(owner);
	return true;
}

/* See ss_capture_extend(). */
static struct ss_error *extend_stacks(struct ss_capture *capture,
				      const struct ss_target *target,
				      const struct ss_capture_options *options,
				      const struct ss_stack_request *requests,
				      size_t count, size_t *ret)
{
	pid_t live = ss_target_find_live(target);
	__attribute__((cleanup(extension_deinit))) struct extension e = {
		.capture = capture,
		.target = target,
		.options = options,
		.memory = { .tid = live,
			    .mem_fd = open_memory(target, live),
			    .pagemap_fd = ss_target_open_task(target, live, "pagemap"),
			    .deadline_ns = ss_now_ns() +
					   (uint64_t)options->timeout_ms * SS_NS_PER_MS },
		.left = options->max_total -
			(size_t)SS_MIN((uint64_t)options->max_total,
				       capture->process.copied_bytes),
		.waits_left = SS_STILL_WAITS,
	};

	if (live == 0)
		return ss_target_missing(target);
	for (size_t i = 0; i < count; i++)
		*ret += extend(&e, &requests[i]);
	return NULL;
}

struct plan_source {
	struct ss_gather_source source; /* must be first: callbacks cast it back */
	const struct ss_process_memory *memory;
};

static void read_for_plan(const struct ss_gather_source *source, struct ss_piece *pieces,
			  size_t count)
{
	const struct plan_source *self = (const struct plan_source *)source;

	ss_process_memory_read_present(self->memory, pieces, count);
}

/* See ss_capture_gather(). */
static struct ss_error *extend_by_plan(struct ss_capture *capture,
				       const struct ss_target *target,
				       const struct ss_gather_plan *plan)
{
	pid_t live = ss_target_find_live(target);
	__attribute__((cleanup(extension_deinit))) struct extension e = {
		.memory = { .tid = live,
			    .mem_fd = open_memory(target, live),
			    .pagemap_fd = ss_target_open_task(target, live, "pagemap"),
			    .ahead = true,
			    .deadline_ns =
				    ss_now_ns() + (uint64_t)PLAN_MS * SS_NS_PER_MS },
	};
	const struct plan_source source = { .source.read = read_for_plan,
					    .memory = &e.memory };
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = NULL;
	struct ss_gathered gathered = { .late = true };

	if (live == 0)
		return ss_target_missing(target);
	struct ss_error *error = ss_gather_new(plan, false, &gather);
	if (error)
		return error;
	gathered.monotonic_ns = ss_now_ns();
	ss_gather_run(gather, &source.source);
	error = ss_gather_give(gather, &gathered);
	if (error) {
		ss_gathered_deinit(&gathered);
		return error;
	}
	ss_gathered_deinit(&capture->gathered);
	capture->gathered = gathered;
	return NULL;
}

enum {
	TIMEOUT_MS = 1000,
	STACK_MAX = 256 * 1024,
	DEEP_MAX = 8 << 20, /* as large as stacks are by default */
	TOTAL_MAX = 256 << 20,
	/* attempts if modules are loaded or unloaded meanwhile; the last one reads maps
	   during the freeze */
	ATTEMPTS = 4,
	CAPTURE_THREAD_STACK = 1 << 20,
};

struct job {
	struct ss_attempt *attempt;
	struct ss_error *error;
};

static void *capture_thread(void *data)
{
	struct job *job = data;

	job->error = ss_attempt_stop(job->attempt);
	return NULL;
}

static void restore_placement(void *data)
{
	const struct job *job = data;

	ss_placement_restore(&job->attempt->placement);
}

/*
 * Stops and copies in a thread of its own: ptrace is bound to a thread, and when that
 * thread ends for any reason, the kernel releases all tracees, even those that have not
 * stopped.
 */
static struct ss_error *stop(struct ss_attempt *attempt)
{
	struct job job = { .attempt = attempt };
	const struct ss_own_thread thread = { .routine = capture_thread,
					      .data = &job,
					      .stack_size = CAPTURE_THREAD_STACK,
					      .started = restore_placement };

	if (attempt->target->held)
		return ss_attempt_stop(attempt);
	ss_placement_prepare(&attempt->placement);
	int errnum = ss_own_thread_run(&thread);
	ss_placement_follow(&attempt->placement);
	if (attempt->freeze.took_sigchld)
		(void)kill(getpid(), SIGCHLD);
	return errnum ? ss_error_new_errno(errnum, "starting the capture thread") :
			job.error;
}

/* The program's own threads handle signals meanwhile. A thread that stops others receives
   SIGCHLD, which reports stops. */
static struct ss_error *copy_threads(struct ss_attempt *attempt)
{
	bool held = attempt->target->held;
	sigset_t all;
	sigset_t before;
	bool stops;

	/* None of these calls can fail. */
	(void)sigfillset(&all);
	if (!held)
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	struct ss_error *error = ss_attempt_copy(attempt, &stops);
	if (!error && stops)
		error = stop(attempt);
	if (!held)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static struct ss_error *run_attempt(struct ss_attempt *attempt, bool *again)
{
	struct ss_error *error = copy_threads(attempt);

	return error ? error : ss_attempt_finish(attempt, again);
}

static void open_perf_map(struct ss_capture *capture, const struct ss_attempt *a)
{
	ss_perfmap_open(capture, a->target);
	if (capture->perf_map &&
	    !ss_target_has_memory(a->target, a->memory.program, a->maps_fd)) {
		ss_module_unref(capture->perf_map); /* may belong to another program */
		capture->perf_map = NULL;
	}
}

/* Returns whether there is one. */
static bool find_perf_map(struct ss_capture *capture, const struct ss_attempt *a)
{
	const struct ss_capture *previous = ss_attempt_sharing(a);

	if (previous && previous->perf_map) /* the file only grows */
		capture->perf_map = ss_module_ref(previous->perf_map);
	else
		open_perf_map(capture, a);
	return capture->perf_map != NULL;
}

/* Of how many modules there is a file, or its image in memory. */
static size_t count_files(const struct ss_capture *capture)
{
	size_t count = 0;

	for (size_t i = 0; i < capture->modules.count; i++)
		count += capture->modules.items[i]->fd >= 0 ||
			 capture->modules.items[i]->bytes;
	return count;
}

/* Returns the result, and opens the modules that it refers to. */
static struct ss_capture *settle(struct ss_attempt *a)
{
	struct ss_capture *capture = take_ptr(a->capture);

	if (!a->options->no_waits)
		ss_objects_collect(capture, a->target, &a->memory, a->options->previous,
				   a->counters);
	/* The files of modules need descriptors. */
	ss_kept_files_free(take_ptr(a->counters));
	const size_t files = count_files(capture);
	(void)ss_files_open(capture, a->options->previous, a->target, &a->memory,
			    a->maps_fd);
	capture->has_opened_files = count_files(capture) > files;
	(void)find_perf_map(capture, a);
	if (a->options->previous)
		ss_capture_keep_stacks(capture, a->options->previous);
	return capture;
}

/* Merges the result into the capture to complete. If no stack is new, both have the same
   modules, and only the threads of the result can refer to others than before. */
static struct ss_error *complete(struct ss_attempt *a, struct ss_capture *completed)
{
	bool moved = ss_complete_has_moved(completed, a->capture);
	struct ss_error *error = moved ? ss_attempt_read_areas(a) : NULL;

	if (error)
		return error;
	struct ss_capture *more = take_ptr(a->capture);
	ss_complete_merge(completed, more);
	bool opened = ss_files_open(moved ? completed : more, NULL, a->target, &a->memory,
				    a->maps_fd);
	opened |= !completed->perf_map && find_perf_map(completed, a);
	if (opened)
		completed->completed_in_place = false;
	return NULL;
}

static struct ss_error *run_attempts(struct ss_target *target,
				     const struct ss_capture_options *options,
				     struct ss_capture *completed,
				     struct ss_capture **ret)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		__attribute__((cleanup(ss_attempt_deinit))) struct ss_attempt a = {
			.target = target,
			.options = options,
			.completed = completed,
			.freeze = { .status_fd = -1 },
			.memory = { .mem_fd = -1, .pagemap_fd = -1 },
			.maps_fd = -1,
			.maps_in_freeze = i == ATTEMPTS - 1,
		};
		bool again = false;
		struct ss_error *error = run_attempt(&a, &again);
		if (error)
			return error;
		if (again)
			continue;
		if (!ret)
			return complete(&a, completed);
		*ret = settle(&a);
		return NULL;
	}
	return ss_error_new(SS_ERROR_CHANGED,
			    "process %d executed another program during every attempt",
			    target->pid);
}

static struct ss_error *set_defaults(struct ss_capture_options *options)
{
	if ((unsigned)options->mode > SS_MODE_AUTO)
		return ss_error_new(SS_ERROR_INVALID, "unknown mode %d",
				    (int)options->mode);
	if (options->mode == SS_MODE_DEFAULT)
		options->mode = SS_MODE_AUTO;
	if (options->timeout_ms == 0)
		options->timeout_ms = TIMEOUT_MS;
	if (options->max_deep == 0)
		options->max_deep = options->max_stack ? options->max_stack : DEEP_MAX;
	if (options->max_stack == 0)
		options->max_stack = STACK_MAX;
	if (options->max_total == 0)
		options->max_total = TOTAL_MAX;
	return NULL;
}

static struct ss_error *read_options(const struct ss_capture_options *given,
				     struct ss_capture_options *ret)
{
	*ret = (struct ss_capture_options){};
	if (given)
		memcpy(ret, given, SS_MIN(given->size, sizeof(*ret)));
	return set_defaults(ret);
}

struct ss_error *ss_capture_take(struct ss_target *target,
				 const struct ss_capture_options *options,
				 struct ss_capture **ret)
{
	struct ss_capture_options o;
	struct ss_error *error = read_options(options, &o);

	if (target->listing)
		o.mode = SS_MODE_NO_STOP;
	else if (target->held)
		o.mode = SS_MODE_STOP;
	if (!error)
		error = ss_target_check(target);
	return error ? error : run_attempts(target, &o, NULL, ret);
}

struct ss_error *ss_capture_complete(struct ss_capture *capture, struct ss_target *target,
				     const struct ss_capture_options *options,
				     const pid_t *tids, size_t count)
{
	_cleanup_free_ pid_t *sorted = calloc(count + 1, sizeof(*sorted));
	struct ss_complete_filter filter = { .capture = capture,
					     .tids = sorted,
					     .count = count };
	struct ss_capture_options o;

	if (!sorted)
		return ss_error_no_memory();
	struct ss_error *error = read_options(options, &o);
	if (!error)
		error = ss_target_check(target);
	if (error || count == 0 || target->listing)
		return error;
	memcpy(sorted, tids, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), ss_compare_pids);
	o.mode = SS_MODE_STOP;
	o.filter = ss_complete_accepts;
	o.filter_data = &filter;
	o.plan = NULL;
	o.previous = o.modules = NULL;
	return run_attempts(target, &o, capture, NULL);
}

struct ss_error *ss_capture_extend(struct ss_capture *capture, struct ss_target *target,
				   const struct ss_capture_options *options,
				   const struct ss_stack_request *requests, size_t count,
				   size_t *ret)
{
	struct ss_capture_options o;
	struct ss_error *error = read_options(options, &o);

	*ret = 0;
	if (!error)
		error = ss_target_check(target);
	if (error || count == 0 || target->listing)
		return error;
	return extend_stacks(capture, target, &o, requests, count, ret);
}

struct ss_error *ss_capture_gather(struct ss_capture *capture, struct ss_target *target,
				   const struct ss_gather_plan *plan)
{
	struct ss_error *error = ss_target_check(target);

	if (error || target->listing)
		return error;
	return extend_by_plan(capture, target, plan);
}
