#include "capture/attempt.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/observe.h"
#include "capture/result.h"
#include "data/gather.h"
#include "data/regions.h"
#include "process/denial.h"

enum {
	MAPS_TEXT_MAX = 1 << 30,
	/* AUTO: maximum number of freezes until no watched thread has run meanwhile */
	TURNS = 4,
	/* AUTO: however few threads there are, so many may be stopped again */
	FEW_STOPS = 8,
	/* so many watched threads tell whether most wake up all the time */
	LIVELY_SAMPLE = 64,
	LIVELY_PART = 8, /* one in so many */
	/* before the second freeze; doubles with each */
	CHECK_NS = 5 * 1000 * 1000,
	/* how long a thread that a signal stops then may stand still */
	CONTINUED_NS = 1000 * 1000,
	/* for a thread that waits for a CPU: a few time slices */
	LOOK_NS = 50 * 1000 * 1000,
	LATE_TURN = 1, /* of threads that were stopped after the others */
};

void ss_attempt_deinit(struct ss_attempt *a)
{
	ss_tasks_deinit(&a->tasks);
	ss_kept_files_free(a->counters);
	ss_arena_deinit(&a->arena);
	ss_capture_free(a->capture);
	ss_look_deinit(&a->look);
	ss_live_free(a->live);
	ss_gather_free(a->gather);
	ss_page_cache_free(a->pages);
	ss_buffer_deinit(&a->maps);
	ss_buffer_deinit(&a->maps_after);
	if (a->target->kept && a->target->kept->maps_fd < 0) {
		a->target->kept->maps_fd = take_fd(a->maps_fd);
		a->target->kept->program = a->memory.program;
	}
	close_cleanup(&a->maps_fd);
	close_cleanup(&a->freeze.status_fd);
	close_cleanup(&a->memory.mem_fd);
	close_cleanup(&a->memory.pagemap_fd);
}

static struct ss_error *read_maps(struct ss_attempt *a, struct ss_buffer *text)
{
	int error = lseek(a->maps_fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (!error)
		error = ss_io_read_all(a->maps_fd, MAPS_TEXT_MAX, text);
	return error ? ss_error_new_errno(-error, "reading the memory map of process %d",
					  a->target->pid) :
		       NULL;
}

/* The root directory, which chroot(2) may have changed; "/" is the root of the mount
   namespace. */
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

static struct ss_error *prepare_gather(struct ss_attempt *a)
{
	struct ss_error *error = NULL;

	if (a->target->kept) {
		a->gather = take_ptr(a->target->kept->gather);
		a->pages = take_ptr(a->target->kept->pages);
	}
	if (!a->gather || !ss_gather_set_plan(a->gather, a->options->plan)) {
		ss_gather_free(take_ptr(a->gather));
		error = ss_gather_new(a->options->plan, true, &a->gather);
	}
	if (error)
		return error;
	if (ss_gather_reads_again(a->gather)) { /* not what it read before */
		ss_page_cache_free(take_ptr(a->pages));
		return NULL;
	}
	if (!a->pages)
		a->pages = ss_page_cache_new();
	return a->pages ? NULL : ss_error_no_memory();
}

struct ss_error *ss_attempt_read_areas(struct ss_attempt *a)
{
	struct ss_error *error = read_maps(a, &a->maps_after);

	if (error)
		return error;
	ss_regions_clear(a->capture);
	return ss_regions_read(a->capture, &a->maps_after);
}

/* The stacks to complete are in the same areas as a few milliseconds ago. */
static struct ss_error *read_areas(struct ss_attempt *a)
{
	if (a->completed)
		return ss_regions_share(a->capture, a->completed) ? NULL :
								    ss_error_no_memory();
	struct ss_error *error = read_maps(a, &a->maps);
	return error ? error : ss_regions_read(a->capture, &a->maps);
}

/* From the second capture of a series on, files stay open. After an execve(2) those of before
   prove nothing any more: another thread may be the leader. Another process may still have the old
   address space, so that its file is not empty. */
static void open_maps(struct ss_attempt *a, pid_t live)
{
	struct ss_kept_files *kept = a->target->kept;
	char byte;

	if (!kept && a->options->previous)
		a->target->kept = ss_kept_files_new(); /* without memory, they do not */
	if (kept && kept->maps_fd >= 0 && kept->program == a->memory.program &&
	    pread(kept->maps_fd, &byte, sizeof(byte), 0) == sizeof(byte)) {
		a->maps_fd = kept->maps_fd;
		kept->maps_fd = -1;
		return;
	}
	if (kept)
		ss_kept_files_clear(kept);
	a->maps_fd = ss_target_open_task(a->target, live, "maps");
}

/* Opens all files, which must not be done during the freeze. Files are reopened for each attempt:
   they belong to the program that ran when they were opened. */
static struct ss_error *prepare(struct ss_attempt *a)
{
	pid_t live = ss_target_reopen_live(a->target);

	if (live == 0)
		return ss_target_missing(a->target);
	a->memory.tid = live;
	a->capture = ss_capture_new();
	if (!a->capture)
		return ss_error_no_memory();
	struct ss_error *error = a->target->listing ? NULL :
						      ss_target_find_arch(a->target);
	if (error)
		return error;
	a->capture->arch = a->target->arch;
	a->capture->process.pid = a->target->pid;
	read_freezer(a->capture, a->target, live);
	if (a->target->listing)
		return NULL;
	a->memory.program = ss_target_program(a->target);
	a->memory.mem_fd = ss_target_open_task(a->target, live, "mem");
	a->memory.pagemap_fd = ss_target_open_task(a->target, live, "pagemap");
	open_maps(a, live);
	int errnum = errno;
	if (a->maps_fd < 0 && errnum == ENOENT) /* it ended after it was found */
		errnum = ESRCH;
	if (a->maps_fd < 0)
		return errnum == EACCES || errnum == EPERM ?
			       ss_denial_explain(a->target) :
			       ss_error_new_errno(errnum, "process %d", a->target->pid);
	ss_target_open_root(a->target);
	read_root(a->capture, a->target);
	/* The process may execute another program later. */
	a->capture->process.executable = ss_result_executable(a->capture, a->target);
	return NULL;
}

/* A thread that was read, and has not run since the previous capture. A kernel worker does not
   change the address space. */
static bool has_not_run(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_WORKER ||
	       (ss_task_is_unstopped(task) && task->before && task->not_run);
}

/* Whether no thread of the process has run since the previous capture. If a thread is left out of
   either, this is not known. */
static bool has_none_run(const struct ss_attempt *a)
{
	const struct ss_capture *previous = a->options->previous;

	if (!previous || a->tasks.unseen ||
	    a->tasks.items.count != previous->threads.count)
		return false;
	for (size_t i = 0; i < a->tasks.items.count; i++)
		if (!has_not_run(&a->tasks.items.items[i]))
			return false;
	return true;
}

/* Reads the areas when the threads have been read: if none of them runs from then on, the
   areas stay the same, too. If none has run since the previous capture, they are its areas: what
   another process has changed that shares the address space (clone(2)) concerns no stack of these
   threads. */
static struct ss_error *prepare_areas(struct ss_attempt *a)
{
	struct ss_error *error = NULL;

	if (a->target->listing)
		return NULL;
	a->areas_kept = !a->maps_in_freeze && has_none_run(a);
	if (!a->areas_kept)
		error = read_areas(a);
	else if (!ss_regions_copy(a->capture, a->options->previous))
		error = ss_error_no_memory();
	if (!error && a->options->plan)
		error = prepare_gather(a);
	if (error || a->options->mode != SS_MODE_LIVE)
		return error;
	if (a->target->arch != &ss_arch_host)
		return ss_error_new(SS_ERROR_UNSUPPORTED,
				    "process %d runs a program of %s, and mode live "
				    "unwinds those of %s only: use another mode",
				    a->target->pid, a->target->arch->name,
				    ss_arch_host.name);
	a->live = ss_live_new(a->capture, &a->memory);
	return a->live ? NULL : ss_error_no_memory();
}

static bool is_running_class(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_STOPPED && task->runs;
}

static bool is_sleeping_class(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_STOPPED && !task->runs;
}

/* LIVE copies the stacks, too: the copy may be unwindable where libunwind
   fails. */
static void copy_class(struct ss_attempt *a, ss_task_predicate *predicate)
{
	ss_arena_copy(&a->arena, a->capture, &a->tasks, &a->memory, a->options,
		      predicate);
	for (size_t i = 0; a->live && i < a->tasks.items.count; i++) {
		struct ss_tracee *task = &a->tasks.items.items[i];
		if (predicate(task))
			ss_live_unwind(a->live, task, a->options->max_frames,
				       a->freeze.deadline_ns);
	}
}

/* Whether the plan says which thread each part belongs to. */
static bool has_roots(const struct ss_attempt *a)
{
	return a->gather && a->gather->plan.root_count > 0;
}

/* All threads are stopped while the stacks of running ones are copied. Then only
   sleeping threads remain stopped. */
static void set_rounds(struct ss_attempt *a)
{
	unsigned turn = 0;

	if (a->freeze.rounds > 0 && has_roots(a))
		turn = a->gather->has_later ? SS_TURN_OTHER : LATE_TURN;
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		struct ss_tracee *task = &a->tasks.items.items[i];
		if (task->phase != SS_TASK_STOPPED)
			continue;
		task->lock.freeze_round = 2 * a->freeze.rounds + (task->runs ? 1 : 2);
		task->turn = turn;
	}
}

static size_t count_phase(const struct ss_attempt *a, enum ss_task_phase phase)
{
	size_t count = 0;

	for (size_t i = 0; i < a->tasks.items.count; i++)
		count += a->tasks.items.items[i].phase == phase;
	return count;
}

struct gather_source {
	struct ss_gather_source source; /* must be first: callbacks cast it back */
	const struct ss_attempt *attempt;
};

static void read_for_gather(const struct ss_gather_source *source,
			    struct ss_piece *pieces, size_t count)
{
	const struct gather_source *self = (const struct gather_source *)source;
	const struct ss_attempt *a = self->attempt;

	if (a->pages)
		ss_page_cache_read(a->pages, &a->memory, pieces, count);
	else
		ss_process_memory_read_present(&a->memory, pieces, count);
}

static const struct ss_tracee *task_of(const struct ss_gather_source *source,
				       size_t thread)
{
	const struct gather_source *self = (const struct gather_source *)source;

	return &self->attempt->tasks.items.items[thread];
}

static bool find_base(const struct ss_gather_source *source, size_t thread,
		      const struct ss_gather_step *step, uint64_t *ret)
{
	return ss_task_find_base(task_of(source, thread), step, ret);
}

/* The stack of a watched thread may be older than the freeze. */
static bool read_stack(const struct ss_gather_source *source, size_t thread,
		       uint64_t address, void *bytes, size_t size)
{
	const struct ss_tracee *task = task_of(source, thread);

	return task->phase == SS_TASK_STOPPED &&
	       ss_task_read_stack(task, address, bytes, size);
}

static bool selects_stopped(const struct ss_gather_source *source, size_t thread,
			    int32_t *ret_tid, uint64_t *ret_pointer)
{
	const struct ss_tracee *task = task_of(source, thread);
	const bool stopped = task->phase == SS_TASK_STOPPED;

	*ret_tid = task->tid;
	*ret_pointer = stopped ? task->arch->attach->thread_pointer(&task->kernel) : 0;
	return stopped;
}

/* The threads that do not run, whose roots are copied later. */
static bool selects_sleeping(const struct ss_gather_source *source, size_t thread,
			     int32_t *ret_tid, uint64_t *ret_pointer)
{
	const struct ss_tracee *task = task_of(source, thread);
	const bool stopped = selects_stopped(source, thread, ret_tid, ret_pointer);

	return is_sleeping_class(task) || (!stopped && ss_task_is_watched(task));
}

enum part { PART_RUNNING, PART_SLEEPING, PART_LATE };

/* Executes the gather plan: while all threads are stopped, without the roots of sleeping ones;
   for these when running threads have been released; and for threads that stopped late. */
static void gather(struct ss_attempt *a, enum part part)
{
	static void (*const run[])(struct ss_gather * gather,
				   const struct ss_gather_source *source) = {
		[PART_RUNNING] = ss_gather_run,
		[PART_SLEEPING] = ss_gather_run_more,
		[PART_LATE] = ss_gather_run_later,
	};
	const struct gather_source source = {
		.source = { .read = read_for_gather,
			    .find_base = find_base,
			    .thread_count = a->tasks.items.count,
			    .pthread_below = ss_arch_host.pthread_below,
			    .selects = part == PART_LATE ? selects_stopped :
							   selects_sleeping,
			    .selects_others = part == PART_RUNNING,
			    .read_stack = read_stack },
		.attempt = a,
	};

	if (!a->gather || (part == PART_LATE && (!has_roots(a) || a->gather->has_later)))
		return;
	if (a->pages)
		ss_page_cache_clear(a->pages);
	run[part](a->gather, &source.source);
}

/* The lock words of watched threads are read while sleeping threads are stopped. */
static void copy_sleeping(struct ss_attempt *a)
{
	copy_class(a, is_sleeping_class);
	ss_observe_copy(&a->arena, a->capture, &a->tasks, &a->memory, a->options,
			2 * a->freeze.rounds + 2);
}

static bool is_to_be_stopped(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_CHOSEN || task->phase == SS_TASK_SEEN;
}

static void leave_placement(const struct ss_attempt *a)
{
	if (!a->target->held)
		ss_placement_leave(&a->placement);
}

static bool has_to_stop(const struct ss_attempt *a)
{
	bool any = false;

	for (size_t i = 0; i < a->tasks.items.count && !any; i++)
		any = is_to_be_stopped(&a->tasks.items.items[i]);
	return any && !a->tasks.dumping_core;
}

/* Chooses among the threads that run, at high priority: the stop has to follow at once.
   False: there is none to be stopped. */
static bool choose_rest(struct ss_attempt *a)
{
	if (!has_to_stop(a))
		return false;
	ss_freeze_prepare(&a->freeze);
	if (!a->target->held) /* this thread goes on to run */
		ss_placement_enter(&a->placement, &a->tasks, a->target);
	if (!a->target->held)
		ss_look_at_running(&a->look, &a->tasks);
	ss_freeze_choose_running(&a->freeze);
	bool any = count_phase(a, SS_TASK_CHOSEN) > 0;
	if (!any)
		leave_placement(a);
	return any;
}

static bool is_stopped(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_STOPPED;
}

static void copy_stopped(void *data)
{
	struct ss_attempt *a = data;

	a->memory.deadline_ns = a->freeze.deadline_ns;
	ss_arena_copy(&a->arena, a->capture, &a->tasks, &a->memory, a->options,
		      is_stopped);
	a->memory.deadline_ns = 0;
}

/* To complete a capture, each thread is compared with what was captured of it. So none is kept
   stopped until the others have stopped, which takes long if they have to wait for a CPU. */
static void copy_each(struct ss_attempt *a)
{
	uint64_t before_ns = a->freeze.duration_ns;

	ss_freeze_each(&a->freeze, copy_stopped, a);
	ss_freeze_finish(&a->freeze);
	a->freeze.duration_ns = before_ns + a->freeze.max_thread_ns;
	copy_sleeping(a);
	leave_placement(a);
}

static void freeze_and_copy(struct ss_attempt *a)
{
	ss_freeze_release_between(&a->freeze);
	if (!choose_rest(a)) { /* all threads are watched */
		(void)ss_freeze_release_late(&a->freeze);
		copy_sleeping(a);
		gather(a, PART_RUNNING);
		gather(a, PART_SLEEPING);
		return;
	}
	if (a->completed) {
		copy_each(a);
		return;
	}
	ss_freeze_stop(&a->freeze);
	a->memory.deadline_ns = a->freeze.deadline_ns;
	if (a->maps_in_freeze)
		ss_error_free(read_maps(a, &a->maps)); /* the later check notices */
	do {
		set_rounds(a);
		copy_class(a, is_running_class);
		/* All stand still, or those that stopped late. */
		gather(a, a->freeze.rounds == 0 ? PART_RUNNING : PART_LATE);
		ss_freeze_release(&a->freeze, true);
		copy_sleeping(a);
		if (a->freeze.rounds == 0)
			gather(a, PART_SLEEPING);
		ss_freeze_release(&a->freeze, false);
	} while (ss_freeze_stop_late(&a->freeze));
	a->memory.deadline_ns = 0;
	ss_freeze_finish(&a->freeze);
	leave_placement(a);
}

/* It has to be checked again that it has not run. */
static void unsettle(struct ss_tracee *task)
{
	if (task->phase == SS_TASK_STEADY)
		ss_task_enter(task, SS_TASK_WATCHED);
}

/* Everything will be copied again. */
static void drop_copies(struct ss_attempt *a)
{
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		struct ss_tracee *task = &a->tasks.items.items[i];
		memset(task->stacks, 0, sizeof(task->stacks));
		task->lock = (struct ss_lock_copy){};
		task->reason = NULL;
		unsettle(task);
		task->turn = 0;
	}
	a->arena.used = 0;
}

/* A thread that is attached and has not stopped: a signal or the interrupt may stop it. */
static bool is_any_exposed(const struct ss_attempt *a)
{
	for (size_t i = 0; i < a->tasks.items.count; i++)
		if (a->tasks.items.items[i].attached)
			return true;
	return false;
}

/* No such thread stands still for long meanwhile. */
static void sleep_between_turns(struct ss_attempt *a, uint64_t duration_ns)
{
	const uint64_t end_ns = ss_now_ns() + duration_ns;
	const uint64_t step_ns = is_any_exposed(a) ? CONTINUED_NS : duration_ns;

	do {
		ss_sleep_ns(step_ns);
		ss_freeze_release_between(&a->freeze);
	} while (ss_now_ns() < end_ns);
}

/* Threads that run every few milliseconds would run during each freeze. Find them
   first, without stopping any thread. */
static void find_active(struct ss_attempt *a, int turn)
{
	sleep_between_turns(a, (uint64_t)CHECK_NS << (turn - 1));
	for (size_t i = 0; i < a->tasks.items.count; i++)
		unsettle(&a->tasks.items.items[i]);
	(void)ss_observe_check(a->target, &a->tasks, &a->look, NULL);
}

/* Whether many watched threads have run since they were read, in a millisecond or so. The
   first freeze would be in vain. */
static bool is_lively(struct ss_attempt *a)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	size_t step = 1 + a->tasks.items.count / LIVELY_SAMPLE;
	size_t watched = 0;
	size_t moved = 0;

	for (size_t i = 0; i < a->tasks.items.count; i += step) {
		struct ss_tracee *task = &a->tasks.items.items[i];
		if (!ss_task_is_watched(task))
			continue;
		watched++;
		moved += ss_task_count_runs(task, a->target, &text) != task->run_count;
	}
	return moved > 0 && moved * LIVELY_PART >= watched;
}

/* Whether another freeze of all threads that are not watched leaves the number of stops
   below that of mode STOP, which stops each thread once. */
static bool may_freeze_again(const struct ss_attempt *a, size_t stops)
{
	size_t next = count_phase(a, SS_TASK_RELEASED);

	for (size_t i = 0; i < a->tasks.items.count; i++) {
		const struct ss_tracee *task = &a->tasks.items.items[i];
		next += task->phase == SS_TASK_SEEN;
	}
	return stops + next <= SS_MAX(a->tasks.items.count, (size_t)FEW_STOPS);
}

/* Threads that a signal had stopped when they were read, but not any more when they were attached. Any
   signal would stop them until they are read again, so that must be soon. One that a signal has stopped
   when all others had been released is not attached any more, and has no copy either. */
static size_t count_continued(const struct ss_attempt *a)
{
	size_t count = 0;

	for (size_t i = 0; i < a->tasks.items.count && !a->tasks.dumping_core; i++) {
		const struct ss_tracee *task = &a->tasks.items.items[i];
		count += task->phase == SS_TASK_SEEN && task->state == 'T' &&
			 (task->attached || task->stopped_ns > 0);
	}
	return count;
}

/* Copies all threads, and finds the watched ones that ran meanwhile. */
static void copy_all(struct ss_attempt *a)
{
	freeze_and_copy(a);
	a->moved = ss_observe_check(a->target, &a->tasks, &a->look, &a->fragile);
	const size_t continued = count_continued(a);
	a->moved += continued;
	a->fragile += continued;
	a->copied = true;
}

/*
 * Stops the threads that are not watched, and copies all. A watched thread that ran
 * meanwhile is stopped in the next freeze, together with all threads stopped before, so
 * that the result is atomic. After some freezes, or if they would be more stops than those
 * of mode STOP, the remaining threads are stopped alone.
 */
static void freeze_until_steady(struct ss_attempt *a)
{
	size_t stops = 0;

	if (!a->copied && a->options->mode == SS_MODE_AUTO && has_to_stop(a) &&
	    is_lively(a)) {
		find_active(a, 1);
		drop_copies(a);
		ss_freeze_choose_again(&a->freeze, true);
	}
	if (!a->copied)
		copy_all(a);
	for (int turn = 1; turn <= TURNS && a->moved > 0; turn++) {
		stops += count_phase(a, SS_TASK_RELEASED);
		/* Stopping the others once more would not keep a thread in its call. */
		bool all = turn < TURNS && a->options->mode == SS_MODE_AUTO &&
			   a->moved > a->fragile && may_freeze_again(a, stops);
		if (all) {
			find_active(a, turn);
			all = may_freeze_again(a, stops);
		}
		if (all)
			drop_copies(a);
		ss_freeze_choose_again(&a->freeze, all);
		if (turn < TURNS)
			copy_all(a);
		else
			freeze_and_copy(a);
	}
}

static bool is_readable(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_RELEASED || task->partial;
}

/* The error if access was denied and no thread could be read; NULL otherwise. */
static struct ss_error *explain_refusal(const struct ss_attempt *a)
{
	const struct ss_tracee *refused = NULL;
	struct ss_tracer tracer;

	for (size_t i = 0; i < a->tasks.items.count; i++) {
		const struct ss_tracee *task = &a->tasks.items.items[i];
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

/* Whether the process is still alive. If its memory is gone, it runs another program.
   Its new memory cannot be checked instead: another exec may be in progress. */
static bool is_still_running(const struct ss_attempt *a)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;
	pid_t live = ss_target_find_live(a->target);

	return live && ss_target_read_stat(a->target, live, &text, &stat) &&
	       !stat.exiting;
}

static bool is_same_module(const struct ss_module_impl *a, const struct ss_module_impl *b)
{
	if (a->pub.base != b->pub.base || a->pub.size != b->pub.size ||
	    a->device != b->device || a->inode != b->inode ||
	    a->pub.deleted != b->pub.deleted || a->mapping_count != b->mapping_count ||
	    strcmp(a->path, b->path) != 0)
		return false;
	for (size_t i = 0; i < a->mapping_count; i++) {
		const struct ss_mapping *m = &a->mappings[i];
		const struct ss_mapping *n = &b->mappings[i];
		if (m->start != n->start || m->end != n->end || m->offset != n->offset ||
		    m->prot != n->prot)
			return false;
	}
	return true;
}

const struct ss_capture *ss_attempt_sharing(const struct ss_attempt *attempt)
{
	const struct ss_capture_options *options = attempt->options;

	return options->previous ? options->previous : options->modules;
}

/* Takes over the modules of an earlier capture, with their open files. Those of both are
   sorted by address. */
static void share_modules(struct ss_capture *capture, const struct ss_capture *previous)
{
	size_t at = 0;

	for (size_t i = 0; previous && i < capture->modules.count; i++) {
		struct ss_module_impl **module = &capture->modules.items[i];
		while (at < previous->modules.count &&
		       previous->modules.items[at]->pub.base < (*module)->pub.base)
			at++;
		if (at == previous->modules.count ||
		    !is_same_module(*module, previous->modules.items[at]))
			continue;
		ss_module_unref(*module);
		*module = ss_module_ref(previous->modules.items[at]);
	}
}

/* Whether no thread of the process has run since the threads were listed and read. */
static bool is_untouched(const struct ss_attempt *a)
{
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		const struct ss_tracee *task = &a->tasks.items.items[i];
		if (task->phase != SS_TASK_WORKER &&
		    (task->phase != SS_TASK_STEADY || task->in_call))
			return false;
	}
	return a->tasks.items.count > 0 &&
	       a->tasks.items.count == ss_tasks_count_now(a->target);
}

/* Sets areas and modules as they were at the freeze. Sets *again if that is unknown. */
static struct ss_error *finish_maps(struct ss_attempt *a, bool *again)
{
	bool untouched = !a->completed && is_untouched(a);

	a->capture->not_run = untouched && has_none_run(a);
	if (untouched) {
		share_modules(a->capture, ss_attempt_sharing(a));
		return NULL;
	}
	*again = a->areas_kept;
	if (*again)
		return NULL;
	struct ss_error *error = a->completed ? NULL : read_maps(a, &a->maps_after);

	/* If the memory vanishes while maps is read, the text is truncated without an
	   error. */
	if (error || !ss_target_has_memory(a->target, a->memory.program, a->maps_fd)) {
		ss_error_free(error);
		/* The memory is gone. If the process has ended, the earlier maps are
		   valid. If it has executed another program, it is unknown which
		   program was stopped. */
		*again = is_still_running(a);
		return NULL;
	}
	if (a->completed)
		return NULL;
	bool same = a->maps.size == a->maps_after.size &&
		    memcmp(a->maps.bytes, a->maps_after.bytes, a->maps.size) == 0;
	if (a->maps_in_freeze || !same) { /* otherwise as read by prepare() */
		*again = !a->maps_in_freeze &&
			 ss_regions_conflict(&a->maps, &a->maps_after);
		ss_regions_clear(a->capture);
		error = ss_regions_read(a->capture,
					a->maps_in_freeze ? &a->maps : &a->maps_after);
	}
	if (!error)
		share_modules(a->capture, ss_attempt_sharing(a));
	return error;
}

/* The facts that are collected next need the counters. */
static void close_task_files(struct ss_attempt *a)
{
	bool counters = !a->completed && !a->options->no_waits;

	ss_tasks_close_files(&a->tasks, a->target, counters ? &a->counters : NULL);
}

struct ss_error *ss_attempt_stop(struct ss_attempt *a)
{
	freeze_until_steady(a);
	close_task_files(a);
	if (!a->freeze.is_mixed)
		return NULL;
	return ss_error_new(SS_ERROR_UNSUPPORTED,
			    "process %d runs %s code in a program of %s, which is not "
			    "supported",
			    a->target->pid,
			    a->target->arch == &ss_arch_host ? "32-bit" : "64-bit",
			    a->target->arch->name);
}

static struct ss_error *prepare_copy(struct ss_attempt *a)
{
	struct ss_error *error = prepare_areas(a);

	return error ? error :
		       ss_arena_prepare(&a->arena, a->capture, &a->tasks, a->options,
					a->target->kept);
}

/* Copies without a stop if none is needed. *stop: one is. */
static struct ss_error *copy_watched(struct ss_attempt *a, bool *stop)
{
	ss_freeze_choose(&a->freeze);
	struct ss_error *error = prepare_copy(a);
	if (error)
		return error;
	*stop = has_to_stop(a);
	if (!*stop) {
		copy_all(a);
		*stop = a->moved > 0;
	}
	if (!*stop)
		close_task_files(a);
	return NULL;
}

static struct ss_error *observe_only(struct ss_attempt *a)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	if (!ss_tasks_reserve(&a->tasks, ss_tasks_count_now(a->target) * 2 + 64))
		return ss_error_no_memory();
	(void)ss_tasks_scan(&a->tasks, a->target);
	for (size_t i = 0; i < a->tasks.items.count; i++)
		ss_task_read(&a->tasks.items.items[i], a->target, a->options, &text);
	for (size_t i = 0; a->target->listing && i < a->tasks.items.count; i++)
		if (ss_task_is_unstopped(&a->tasks.items.items[i]))
			ss_task_enter(&a->tasks.items.items[i], SS_TASK_DENIED);
	struct ss_error *error = prepare_copy(a);
	if (error)
		return error;
	copy_sleeping(a);
	gather(a, PART_RUNNING);
	gather(a, PART_SLEEPING);
	/* Threads that ran are observed below. */
	(void)ss_observe_check(a->target, &a->tasks, NULL, NULL);
	close_task_files(a);
	return NULL;
}

struct ss_error *ss_attempt_copy(struct ss_attempt *a, bool *ret_stop)
{
	struct ss_error *error = prepare(a);

	*ret_stop = false;
	if (error)
		return error;
	a->capture->process.time_ns = ss_clock_ns(CLOCK_REALTIME);
	a->freeze = (struct ss_freeze){ .target = a->target,
					.options = a->options,
					.tasks = &a->tasks,
					.status_fd = -1 };
	a->look = (struct ss_look){ .target = a->target,
				    .memory = &a->memory,
				    .options = a->options,
				    .limit_ns = LOOK_NS };
	ss_observe_tracer(a->target, a->memory.tid, &a->tasks);
	return a->options->mode == SS_MODE_NO_STOP ? observe_only(a) :
						     copy_watched(a, ret_stop);
}

static struct ss_error *give_gathered(struct ss_attempt *a)
{
	struct ss_gathered *late = ss_vector_push(&a->capture->turns);

	if (!late)
		return ss_error_no_memory();
	*late = (struct ss_gathered){};
	struct ss_error *error = ss_gather_give_later(a->gather, late);
	a->capture->plan_id = ss_gather_plan_id(a->options->plan);
	if (!error)
		error = ss_gather_give(a->gather, &a->capture->gathered);
	/* In a series, touching the memory would take longer than all else. */
	if (!error && a->target->kept && a->pages &&
	    ss_gather_take_back(a->gather, &a->capture->gathered, late)) {
		a->target->kept->gather = take_ptr(a->gather);
		a->target->kept->pages = take_ptr(a->pages);
	}
	return error;
}

struct ss_error *ss_attempt_finish(struct ss_attempt *a, bool *again)
{
	for (size_t i = 0; i < a->tasks.items.count; i++) {
		struct ss_tracee *task = &a->tasks.items.items[i];
		if (task->phase != SS_TASK_RELEASED && task->phase != SS_TASK_STEADY &&
		    has_roots(a))
			task->turn = SS_TURN_OTHER;
	}
	bool looks = a->options->mode != SS_MODE_NO_STOP && !a->tasks.dumping_core &&
		     !a->target->held;
	ss_observe_tasks(&a->arena, a->capture, a->target, &a->tasks, &a->memory,
			 a->options, looks ? &a->look : NULL);
	ss_observe_kernel(a->capture, a->target, &a->tasks);
	struct ss_error *error = explain_refusal(a);
	if (!error && !a->target->listing)
		error = finish_maps(a, again);
	if (error || *again)
		return error;
	error = ss_result_fill(a->capture, a->target, &a->tasks, &a->freeze, a->options,
			       &a->arena);
	return error || !a->gather ? error : give_gathered(a);
}
