#include "capture/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture/observe.h"
#include "capture/result.h"
#include "target/denial.h"
#include "target/freezer.h"
#include "target/regions.h"

enum {
	MAPS_TEXT_MAX = 1 << 30,
	/* AUTO: turns of the freeze until what is watched stays still meanwhile. */
	TURNS = 4,
	/* Before the second turn, and twice as long before each later one. */
	LOOK_NS = 5 * 1000 * 1000,
};

void ss_attempt_deinit(struct ss_attempt *a)
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

static struct ss_error *read_maps(struct ss_attempt *a, struct ss_text *text)
{
	int error = lseek(a->maps_fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (!error)
		error = ss_io_read_all(a->maps_fd, MAPS_TEXT_MAX, text);
	return error ? ss_error_new_errno(-error, "reading the memory map of process %d",
					  a->target->pid) :
		       NULL;
}

/* Of a process that has changed its root; "/" is that of its mount namespace. */
static void read_root(struct ss_capture *capture, const struct ss_target *target)
{
	char path[PATH_MAX];
	ssize_t n = readlinkat(target->proc_fd, "root", path, sizeof(path));

	if (n > 1 && (size_t)n < sizeof(path))
		capture->root = ss_intern_bytes(capture->strings, path, (size_t)n);
}

static void read_freezer(struct ss_capture *capture, const struct ss_target *target,
			 pid_t live)
{
	_cleanup_free_ char *cgroup = ss_freezer_find(target, live);

	if (cgroup)
		capture->process.frozen = ss_intern_string(capture->strings, cgroup);
}

/* Opens what the freeze must not open, and reads the areas. The files are opened anew
   for each attempt: they belong to the program that ran when they were opened. */
static struct ss_error *prepare(struct ss_attempt *a)
{
	pid_t live = ss_target_follow_live(a->target);

	if (live == 0)
		return ss_error_new(SS_ERROR_NO_PROCESS, "process %d has ended",
				    a->target->pid);
	a->memory.tid = live;
	a->capture = ss_capture_new();
	if (!a->capture)
		return ss_error_no_memory();
	read_freezer(a->capture, a->target, live);
	if (a->target->listing)
		return NULL;
	a->memory.program = ss_target_program(a->target);
	a->memory.mem_fd = open_task_file(a->target, live, "mem");
	a->maps_fd = open_task_file(a->target, live, "maps");
	int errnum = errno;
	if (a->maps_fd < 0 && errnum == ENOENT) /* since it was found */
		errnum = ESRCH;
	if (a->maps_fd < 0)
		return errnum == EACCES || errnum == EPERM ?
			       ss_denial_explain(a->target) :
			       ss_error_new_errno(errnum, "process %d", a->target->pid);
	ss_target_hold_root(a->target);
	read_root(a->capture, a->target);
	/* Later it may be that of another program. */
	a->capture->process.executable = ss_result_executable(a->capture, a->target);
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
static void copy_class(struct ss_attempt *a, ss_task_predicate *wanted)
{
	ss_arena_copy(&a->arena, a->capture, &a->tasks, &a->memory, a->options, wanted);
	for (size_t i = 0; a->live && i < a->tasks.items.count; i++) {
		struct ss_task *task = &a->tasks.items.items[i];
		if (wanted(task))
			ss_live_unwind(a->live, task, a->options->max_frames);
	}
}

/* When running threads are read all stand still, sleepers only when these are read. */
static void set_moments(struct ss_attempt *a)
{
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		struct ss_task *task = &a->tasks.items.items[i];
		if (task->phase == SS_TASK_STOPPED)
			task->lock.moment = 2 * a->freeze.rounds + (task->runs ? 1 : 2);
	}
}

static size_t count_phase(const struct ss_attempt *a, enum ss_task_phase phase)
{
	size_t count = 0;

	for (size_t i = 0; i < a->tasks.items.count; i++)
		count += a->tasks.items.items[i].phase == phase;
	return count;
}

/* The locks of watched threads are read while sleepers stand still, as are theirs. */
static void copy_sleeping(struct ss_attempt *a)
{
	copy_class(a, is_sleeping_class);
	ss_observe_copy(&a->arena, a->capture, &a->tasks, &a->memory, a->options,
			2 * a->freeze.rounds + 2);
}

static void freeze_and_copy(struct ss_attempt *a)
{
	if (count_phase(a, SS_TASK_SEIZED) == 0) { /* all are watched */
		copy_sleeping(a);
		return;
	}
	ss_placement_enter(&a->placement, &a->tasks, a->target);
	ss_freeze_stop(&a->freeze);
	if (a->maps_in_freeze)
		ss_error_free(read_maps(a, &a->maps)); /* the check after tells */
	do {
		set_moments(a);
		copy_class(a, is_running_class);
		ss_freeze_release(&a->freeze, true);
		copy_sleeping(a);
		ss_freeze_release(&a->freeze, false);
	} while (ss_freeze_stop_late(&a->freeze));
	ss_freeze_finish(&a->freeze);
	ss_placement_leave();
}

/* All will be copied anew. */
static void forget_copies(struct ss_attempt *a)
{
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		struct ss_task *task = &a->tasks.items.items[i];
		memset(task->stacks, 0, sizeof(task->stacks));
		task->lock = (struct ss_lock_copy){};
		task->reason = NULL;
	}
	a->arena.used = 0;
}

/* What runs every few milliseconds would move in each turn: it is found first, without
   stopping anything. */
static void find_lively(struct ss_attempt *a, int turn)
{
	struct timespec ts = { .tv_nsec = (long)LOOK_NS << (turn - 1) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
	(void)ss_observe_check(a->target, &a->tasks);
}

/*
 * Stops what is not watched, and copies all. A watched thread that has run meanwhile is
 * stopped in the next turn, together with all that were stopped before, so that in the
 * end all were seen at one moment. After some turns the rest is stopped for itself.
 */
static void take_turns(struct ss_attempt *a)
{
	freeze_and_copy(a);
	for (int turn = 1; ss_observe_check(a->target, &a->tasks) > 0; turn++) {
		bool all = turn < TURNS && a->options->mode == SS_MODE_AUTO;
		if (all) {
			find_lively(a, turn);
			forget_copies(a);
		}
		ss_freeze_seize_again(&a->freeze, all);
		freeze_and_copy(a);
		if (!all)
			return;
	}
}

static bool is_readable(const struct ss_task *task)
{
	return task->phase == SS_TASK_RELEASED || task->partial;
}

/* Why not one thread could be read, if it was refused. NULL: that is not the case. */
static struct ss_error *explain_refusal(const struct ss_attempt *a)
{
	const struct ss_task *refused = NULL;
	struct ss_tracer tracer;

	for (size_t i = 0; i < a->tasks.items.count; i++) {
		const struct ss_task *task = &a->tasks.items.items[i];
		if (is_readable(task))
			return NULL;
		if (task->phase == SS_TASK_REFUSED || task->phase == SS_TASK_DENIED)
			refused = task;
	}
	if (!refused || a->target->listing || ss_target_find_live(a->target) == 0)
		return NULL;
	if (ss_denial_find_tracer(a->target, refused->tid, &tracer))
		return ss_denial_by_tracer(a->target, &tracer);
	return ss_denial_explain(a->target);
}

/* Whether the process goes on, with another program if its memory is gone. To look for
   its new memory would not do: the next exec may be under way. */
static bool goes_on(const struct ss_attempt *a)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_stat stat;
	pid_t live = ss_target_find_live(a->target);

	return live && ss_target_read_stat(a->target, live, &text, &stat) &&
	       !stat.exiting;
}

/* Areas and modules as they were at the freeze. *again: that cannot be told. */
static struct ss_error *settle_maps(struct ss_attempt *a, bool *again)
{
	struct ss_error *error = read_maps(a, &a->maps_after);

	/* If it goes while maps is read page by page, the text ends early without a sign.
	 */
	if (error || !ss_memory_is_mapped(&a->memory, a->target, a->maps_fd)) {
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

static struct ss_error *stop_and_copy(struct ss_attempt *a)
{
	ss_freeze_seize(&a->freeze);
	struct ss_error *error =
		ss_arena_prepare(&a->arena, a->capture, &a->tasks, a->options);
	if (error)
		return error;
	take_turns(a);
	return a->freeze.foreign ?
		       ss_error_new(SS_ERROR_UNSUPPORTED,
				    "process %d runs 32-bit code, which this stacksnap "
				    "does not read",
				    a->target->pid) :
		       NULL;
}

static struct ss_error *look_only(struct ss_attempt *a)
{
	_cleanup_text_ struct ss_text text = {};

	if (!ss_tasks_reserve(&a->tasks, ss_tasks_count_now(a->target) * 2 + 64))
		return ss_error_no_memory();
	(void)ss_tasks_scan(&a->tasks, a->target);
	for (size_t i = 0; i < a->tasks.items.count; i++)
		ss_task_read(&a->tasks.items.items[i], a->target, a->options, &text);
	for (size_t i = 0; a->target->listing && i < a->tasks.items.count; i++)
		if (a->tasks.items.items[i].phase == SS_TASK_SEEN)
			a->tasks.items.items[i].phase = SS_TASK_DENIED;
	struct ss_error *error =
		ss_arena_prepare(&a->arena, a->capture, &a->tasks, a->options);
	if (error)
		return error;
	copy_sleeping(a);
	(void)ss_observe_check(a->target, &a->tasks); /* each that moved is observed */
	return NULL;
}

struct ss_error *ss_attempt_make(struct ss_attempt *a, bool *again)
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
	ss_observe_tracer(a->target, a->memory.tid, &a->tasks);
	error = a->options->mode == SS_MODE_NO_STOP ? look_only(a) : stop_and_copy(a);
	if (error)
		return error;
	ss_observe_tasks(&a->arena, a->capture, a->target, &a->tasks, &a->memory,
			 a->options);
	ss_observe_kernel(a->capture, a->target, &a->tasks);
	error = explain_refusal(a);
	if (!error && !a->target->listing)
		error = settle_maps(a, again);
	if (error || *again)
		return error;
	return ss_result_fill(a->capture, a->target, &a->tasks, &a->freeze, a->options,
			      &a->arena);
}
