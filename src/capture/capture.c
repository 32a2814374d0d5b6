#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "target/denial.h"
#include "target/files.h"
#include "target/perfmap.h"
#include "capture/freeze.h"
#include "capture/live.h"
#include "capture/observe.h"
#include "capture/placement.h"
#include "target/regions.h"
#include "capture/result.h"
#include "capture/stacks.h"
#include "objects/objects.h"

enum {
	TIMEOUT_MS = 1000,
	STACK_MAX = 256 * 1024,
	TOTAL_MAX = 256 << 20,
	MAPS_TEXT_MAX = 1 << 30,
	/* Attempts while modules come and go; the last one reads maps in the freeze. */
	ATTEMPTS = 4,
	CAPTURE_THREAD_STACK = 1 << 20,
};

/* All that one attempt needs. */
struct attempt {
	struct ss_target *target;
	const struct ss_capture_options *options;
	struct ss_capture *capture;
	struct ss_task_list tasks;
	struct ss_arena arena;
	struct ss_freeze freeze;
	struct ss_placement placement;
	struct ss_memory memory;
	struct ss_live *live;
	struct ss_text maps;
	struct ss_text maps_after;
	int maps_fd;
	bool maps_in_freeze;
};

static void attempt_deinit(struct attempt *a)
{
	ss_tasks_deinit(&a->tasks);
	ss_arena_deinit(&a->arena);
	ss_capture_free(a->capture);
	ss_live_free(a->live);
	ss_text_free(&a->maps);
	ss_text_free(&a->maps_after);
	close_cleanup(&a->maps_fd);
	close_cleanup(&a->memory.mem_fd);
}

static int open_task_file(const struct ss_target *target, pid_t tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/%s", tid, name); /* always fits */
	return openat(target->task_fd, path, O_RDONLY | O_CLOEXEC);
}

static struct ss_error *read_maps(struct attempt *a, struct ss_text *text)
{
	int error = lseek(a->maps_fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (!error)
		error = ss_io_read_all(a->maps_fd, MAPS_TEXT_MAX, text);
	return error ? ss_error_new_errno(-error, "reading the memory map of process %d",
					  a->target->pid) :
		       NULL;
}

/* Opens what the freeze must not open, and reads the areas. The files are opened anew
   for each attempt: they belong to the program that ran when they were opened. */
static struct ss_error *prepare(struct attempt *a)
{
	pid_t live = ss_target_follow_live(a->target);

	if (live == 0)
		return ss_error_new(SS_ERROR_NO_PROCESS, "process %d has ended",
				    a->target->pid);
	a->memory.tid = live;
	a->memory.mem_fd = open_task_file(a->target, live, "mem");
	a->maps_fd = open_task_file(a->target, live, "maps");
	int errnum = errno;
	if (a->maps_fd < 0 && errnum == ENOENT) /* since it was found */
		errnum = ESRCH;
	if (a->maps_fd < 0)
		return errnum == EACCES || errnum == EPERM ?
			       ss_denial_explain(a->target) :
			       ss_error_new_errno(errnum, "process %d", a->target->pid);
	a->capture = ss_capture_new();
	if (!a->capture)
		return ss_error_no_memory();
	struct ss_error *error = read_maps(a, &a->maps);
	if (!error)
		error = ss_regions_read(a->capture, &a->maps);
	if (error || a->options->mode != SS_MODE_LIVE)
		return error;
	a->live = ss_live_new(a->capture, &a->memory);
	return a->live ? NULL : ss_error_no_memory();
}

static bool is_running_class(const struct ss_task *task)
{
	return task->phase == SS_TASK_STOPPED && task->runs;
}

static bool is_sleeping_class(const struct ss_task *task)
{
	return task->phase == SS_TASK_STOPPED && !task->runs;
}

/* LIVE copies, too: where libunwind-ptrace finds no way on, the copy may have one. */
static void copy_class(struct attempt *a, ss_task_predicate *wanted)
{
	ss_arena_copy(&a->arena, a->capture, &a->tasks, &a->memory, a->options, wanted);
	for (size_t i = 0; a->live && i < a->tasks.items.count; i++) {
		struct ss_task *task = &a->tasks.items.items[i];
		if (wanted(task))
			ss_live_unwind(a->live, task, a->options->max_frames);
	}
}

/* When running threads are read all stand still, sleepers only when these are read. */
static void set_moments(struct attempt *a)
{
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		struct ss_task *task = &a->tasks.items.items[i];
		if (task->phase == SS_TASK_STOPPED)
			task->lock.moment = 2 * a->freeze.rounds + (task->runs ? 1 : 2);
	}
}

static void freeze_and_copy(struct attempt *a)
{
	ss_placement_enter(&a->placement, &a->tasks, a->target);
	ss_freeze_stop(&a->freeze);
	if (a->maps_in_freeze)
		ss_error_free(read_maps(a, &a->maps)); /* the check after tells */
	do {
		set_moments(a);
		copy_class(a, is_running_class);
		ss_freeze_release(&a->freeze, true);
		copy_class(a, is_sleeping_class);
		ss_freeze_release(&a->freeze, false);
	} while (ss_freeze_stop_late(&a->freeze));
	ss_freeze_finish(&a->freeze);
	ss_placement_leave();
}

/* Why not one thread could be attached. NULL: none is left. */
static struct ss_error *explain_refusal(const struct attempt *a)
{
	if (ss_target_find_live(a->target) == 0)
		return NULL;
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		const struct ss_task *task = &a->tasks.items.items[i];
		if (task->phase != SS_TASK_REFUSED)
			continue;
		struct ss_error *error = ss_denial_find_tracer(a->target, task->tid);
		return error ? error : ss_denial_explain(a->target);
	}
	return NULL;
}

static size_t count_phase(const struct attempt *a, enum ss_task_phase phase)
{
	size_t count = 0;

	for (size_t i = 0; i < a->tasks.items.count; i++)
		count += a->tasks.items.items[i].phase == phase;
	return count;
}

/* Whether the process goes on, with another program if its memory is gone. To look for
   its new memory would not do: the next exec may be under way. */
static bool goes_on(const struct attempt *a)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_stat stat;
	pid_t live = ss_target_find_live(a->target);

	return live && ss_target_read_stat(a->target, live, &text, &stat) &&
	       !stat.exiting;
}

/* Whether the memory that maps_fd tells of is there still. If it goes, by an exec or the
   end, while maps is read page by page, the text ends early without a sign. */
static bool still_maps(const struct attempt *a)
{
	char byte;

	return lseek(a->maps_fd, 0, SEEK_SET) == 0 &&
	       read(a->maps_fd, &byte, sizeof(byte)) == sizeof(byte);
}

/* Areas and modules as they were at the freeze. *again: that cannot be told. */
static struct ss_error *settle_maps(struct attempt *a, bool *again)
{
	struct ss_error *error = read_maps(a, &a->maps_after);

	if (error || !still_maps(a)) {
		ss_error_free(error);
		/* Its memory is gone. If it has ended, what was before holds; if it
		   runs another program, nobody knows which one was stopped. */
		*again = goes_on(a);
		return NULL;
	}
	*again = !a->maps_in_freeze && ss_regions_conflict(&a->maps, &a->maps_after);
	const struct ss_text *maps = a->maps_in_freeze ? &a->maps : &a->maps_after;
	ss_regions_clear(a->capture);
	return ss_regions_read(a->capture, maps);
}

static struct ss_error *stop_and_copy(struct attempt *a)
{
	ss_freeze_seize(&a->freeze);
	if (count_phase(a, SS_TASK_SEIZED) == 0) {
		struct ss_error *error = explain_refusal(a);
		if (error)
			return error;
	}
	struct ss_error *error =
		ss_arena_prepare(&a->arena, a->capture, &a->tasks, a->options);
	if (error)
		return error;
	freeze_and_copy(a);
	return a->freeze.foreign ?
		       ss_error_new(SS_ERROR_UNSUPPORTED,
				    "process %d runs 32-bit code, which this stacksnap "
				    "does not read",
				    a->target->pid) :
		       NULL;
}

static struct ss_error *list_only(struct attempt *a)
{
	_cleanup_text_ struct ss_text text = {};

	if (!ss_tasks_reserve(&a->tasks, ss_tasks_count_now(a->target) * 2 + 64))
		return ss_error_no_memory();
	(void)ss_tasks_scan(&a->tasks, a->target);
	for (size_t i = 0; i < a->tasks.items.count; i++)
		ss_task_read(&a->tasks.items.items[i], a->target, a->options, &text);
	a->freeze.begin_ns = a->freeze.end_ns = ss_freeze_now();
	return ss_arena_prepare(&a->arena, a->capture, &a->tasks, a->options);
}

static struct ss_error *try_once(struct attempt *a, bool *again)
{
	struct timespec ts;
	struct ss_error *error = prepare(a);

	if (error)
		return error;
	(void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail: the clock exists */
	a->capture->process.time_ns =
		(uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	a->freeze = (struct ss_freeze){ .target = a->target,
					.options = a->options,
					.tasks = &a->tasks };
	error = a->options->mode == SS_MODE_NO_STOP ? list_only(a) : stop_and_copy(a);
	if (error)
		return error;
	ss_observe_tasks(&a->arena, a->capture, a->target, &a->tasks, &a->memory,
			 a->options);
	error = settle_maps(a, again);
	if (error || *again)
		return error;
	return ss_result_fill(a->capture, a->target, &a->tasks, &a->freeze, a->options,
			      &a->arena);
}

struct job {
	struct attempt *attempt;
	struct ss_error *error;
	bool again;
};

static void *capture_thread(void *data)
{
	struct job *job = data;

	job->error = try_once(job->attempt, &job->again);
	return NULL;
}

/*
 * Makes an attempt in a thread of its own: ptrace binds to a thread, and at its end,
 * however it comes, the kernel releases all that it holds, also what had not stopped.
 */
static struct ss_error *run_attempt(struct attempt *attempt, bool *again)
{
	struct job job = { .attempt = attempt };
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all;
	sigset_t before;
	int errnum = pthread_attr_init(&attr);

	if (errnum)
		return ss_error_new_errno(errnum, "starting the capture thread");
	/* Cannot fail: the size is above the minimum and a multiple of a page. */
	(void)pthread_attr_setstacksize(&attr, CAPTURE_THREAD_STACK);
	/* Signals are for the program's own threads. SIGCHLD, which tells of stops, is
	   for the new one: this one waits for it with all of them blocked as well. None
	   of these calls can fail. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	ss_placement_prepare(&attempt->placement);
	errnum = pthread_create(&thread, &attr, capture_thread, &job);
	ss_placement_restore(&attempt->placement);
	if (!errnum)
		(void)pthread_join(thread, NULL);
	ss_placement_follow(&attempt->placement);
	if (attempt->freeze.took_sigchld)
		(void)kill(getpid(), SIGCHLD);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	*again = job.again;
	return errnum ? ss_error_new_errno(errnum, "starting the capture thread") :
			job.error;
}

static struct ss_error *run_attempts(struct ss_target *target,
				     const struct ss_capture_options *options,
				     struct ss_capture **ret)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		__attribute__((cleanup(attempt_deinit))) struct attempt a = {
			.target = target,
			.options = options,
			.memory.mem_fd = -1,
			.maps_fd = -1,
			.maps_in_freeze = i == ATTEMPTS - 1,
		};
		bool again = false;
		struct ss_error *error = run_attempt(&a, &again);
		if (error)
			return error;
		if (again)
			continue;
		ss_objects_look(a.capture, target, &a.memory);
		ss_files_open(a.capture, target, &a.memory);
		ss_perfmap_open(a.capture, target);
		*ret = take_ptr(a.capture);
		return NULL;
	}
	return ss_error_new(SS_ERROR_CHANGED,
			    "process %d began another program each time it was looked at",
			    target->pid);
}

static struct ss_error *set_defaults(struct ss_capture_options *options)
{
	if ((unsigned)options->mode > SS_MODE_NO_STOP)
		return ss_error_new(SS_ERROR_INVALID, "there is no mode %d",
				    (int)options->mode);
	if (options->mode == SS_MODE_AUTO)
		options->mode = SS_MODE_STOP;
	if (options->timeout_ms == 0)
		options->timeout_ms = TIMEOUT_MS;
	if (options->max_stack == 0)
		options->max_stack = STACK_MAX;
	if (options->max_total == 0)
		options->max_total = TOTAL_MAX;
	return NULL;
}

struct ss_error *ss_capture_take(struct ss_target *target,
				 const struct ss_capture_options *options,
				 struct ss_capture **ret)
{
	struct ss_capture_options o = {};

	if (options)
		memcpy(&o, options, SS_MIN(options->size, sizeof(o)));
	struct ss_error *error = set_defaults(&o);
	if (!error)
		error = ss_target_check(target);
	return error ? error : run_attempts(target, &o, ret);
}
