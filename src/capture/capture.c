#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/attempt.h"
#include "capture/complete.h"
#include "capture/extend.h"
#include "capture/stop.h"
#include "data/pipeline.h"
#include "process/objects.h"
#include "process/files.h"
#include "process/own_thread.h"
#include "process/perfmap.h"
#include "data/gather_plan.h"

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
	    !ss_process_memory_is_mapped(&a->memory, a->target, a->maps_fd)) {
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

/* Returns the result, and opens the modules that it refers to. */
static struct ss_capture *settle(struct ss_attempt *a)
{
	struct ss_capture *capture = take_ptr(a->capture);

	if (!a->options->no_waits)
		ss_objects_collect(capture, a->target, &a->memory, a->options->previous,
				   a->counters);
	/* The files of modules need descriptors. */
	ss_kept_files_free(take_ptr(a->counters));
	(void)ss_files_open(capture, a->options->previous, a->target, &a->memory,
			    a->maps_fd);
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
		return ss_error_new(SS_ERROR_INVALID, "there is no mode %d",
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
	qsort(sorted, count, sizeof(*sorted), ss_complete_compare_tids);
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
	return ss_extend_stacks(capture, target, &o, requests, count, ret);
}

struct ss_error *ss_capture_gather(struct ss_capture *capture, struct ss_target *target,
				   const struct ss_gather_plan *plan)
{
	struct ss_error *error = ss_target_check(target);

	if (error || target->listing)
		return error;
	return ss_extend_by_plan(capture, target, plan);
}
