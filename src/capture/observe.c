#include "capture/observe.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process/denial.h"

enum { TRIES = 3 };

static bool is_left(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_SEEN || task->phase == SS_TASK_WATCHED ||
	       task->phase == SS_TASK_INTERRUPTED || task->phase == SS_TASK_REFUSED;
}

static bool is_partial(const struct ss_tracee *task)
{
	return task->partial;
}

/*
 * Sets state and name of a thread that appeared during the freeze, when they were not
 * read. The registers reveal the state, even of a thread that was about to resume an
 * interrupted wait, perhaps after an earlier stop on a busy machine.
 */
static void identify(const struct ss_target *target, struct ss_tracee *task,
		     struct ss_buffer *text)
{
	struct ss_stat stat;

	bool blocked = target->arch->attach->is_blocked(&task->kernel);

	if (task->phase == SS_TASK_RELEASED &&
	    target->arch->attach->is_worker(&task->kernel))
		ss_task_enter(task, SS_TASK_WORKER);
	if (task->phase == SS_TASK_RELEASED && task->state == 'R' && blocked)
		task->state = 'S';
	if (task->phase != SS_TASK_RELEASED || task->state != '?')
		return;
	task->state = blocked ? 'S' : 'R';
	if (ss_target_read_stat(target, task->tid, text, &stat))
		memcpy(task->comm, stat.comm, sizeof(task->comm));
}

static bool read_call(const struct ss_target *target, struct ss_tracee *task,
		      struct ss_buffer *text)
{
	return ss_target_read_syscall(target, task->tid, text, &task->call) &&
	       task->call.kind != SS_SYSCALL_RUNNING && task->call.sp != 0;
}

/* NULL: the caller asked not to stop it. */
static const char *reason_of(const struct ss_task_list *tasks,
			     const struct ss_tracee *task)
{
	if (tasks->dumping_core)
		return "the process is dumping core: not touched";
	if (tasks->traced[0] && task->phase != SS_TASK_INTERRUPTED)
		return task->partial ? tasks->traced_read : tasks->traced;
	if (task->phase == SS_TASK_REFUSED)
		return task->partial ? "could not be attached; read without stopping it" :
				       "could not be attached";
	if (ss_task_is_slow(task))
		return "in uninterruptible sleep (D); read without stopping it";
	if (task->phase == SS_TASK_INTERRUPTED)
		return "did not stop in time; read without stopping it";
	if (task->limited && !task->partial)
		return "not stopped: stopping it would take more than 1 % of its time, "
		       "or over 5 ms";
	if (task->moves_data && !task->partial)
		return "not stopped: it moves data in system calls, which a stop would "
		       "end early";
	return NULL;
}

/* Names of kernel functions, which depend on the build of the kernel. */
static const char *read_kernel_text(const struct ss_capture *capture,
				    const struct ss_target *target, pid_t tid,
				    const char *name, struct ss_buffer *text)
{
	if (!ss_target_read_task(target, tid, name, text) || text->size == 0)
		return NULL;
	text->size = ss_kernel_stack_clean(text->bytes, text->size);
	bool none = text->size == 0 || strcmp(text->bytes, "0") == 0;
	return none ? NULL : ss_intern_string(capture->strings, text->bytes);
}

void ss_observe_kernel(const struct ss_capture *capture, const struct ss_target *target,
		       struct ss_task_list *tasks)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		bool denied = task->phase == SS_TASK_DENIED;
		bool worker = task->phase == SS_TASK_WORKER;
		if (!denied && !worker &&
		    (task->state != 'D' || task->phase == SS_TASK_GONE ||
		     task->phase == SS_TASK_EXCLUDED))
			continue;
		task->wchan =
			read_kernel_text(capture, target, task->tid, "wchan", &text);
		if (!denied)
			task->kernel_stack = read_kernel_text(capture, target, task->tid,
							      "stack", &text);
		/* It has run since its registers were read, so this may belong to
		   another call. */
		if (task->partial && task->run_count &&
		    ss_task_read_run_count(target, task->tid, &text) != task->run_count)
			task->wchan = task->kernel_stack = NULL;
	}
}

void ss_observe_tracer(const struct ss_target *target, pid_t tid,
		       struct ss_task_list *tasks)
{
	struct ss_tracer tracer;

	if (tasks->traced[0] || !ss_denial_find_tracer(target, tid, &tracer) ||
	    tracer.pid == getpid())
		return;
	/* Both fit: a name is shorter than 64 bytes. */
	(void)snprintf(tasks->traced, sizeof(tasks->traced), "traced by %d (%s)",
		       tracer.pid, tracer.name);
	(void)snprintf(tasks->traced_read, sizeof(tasks->traced_read),
		       "%s; read without stopping it", tasks->traced);
}

/* Whether the thread runs in a call, and its registers are known, or sleeps by now. */
static bool find_call(struct ss_look *look, struct ss_task_list *one)
{
	struct ss_tracee *task = one->items.items;

	if (!look || !ss_task_is_unstopped(task) || task->limited)
		return false;
	bool spared = task->spared;
	bool moves_data = task->moves_data;
	task->runs = true;
	task->spared = task->moves_data = false;
	task->computes &= !moves_data;
	ss_task_enter(task, SS_TASK_SEEN);
	task->sampled_ns = 0;
	ss_look_briefly(look, one);
	task->spared |= spared && look->cpus.refused;
	task->moves_data = moves_data;
	return ss_task_is_watched(task);
}

/* Reads one thread; retries a few times if it ran meanwhile. */
static void observe(struct ss_arena *arena, const struct ss_capture *capture,
		    const struct ss_target *target, struct ss_tracee *task,
		    const struct ss_process_memory *memory,
		    const struct ss_capture_options *options, struct ss_look *look,
		    struct ss_buffer *text)
{
	struct ss_task_list one = { .items = { .items = task, .count = 1 } };

	for (int i = 0; i < TRIES && !task->consistent; i++) {
		size_t mark = arena->used;
		/* The copies of the previous try were released. */
		memset(task->stacks, 0, sizeof(task->stacks));
		task->lock = (struct ss_lock_copy){};
		uint64_t before = ss_task_read_run_count(target, task->tid, text);
		task->in_call = false;
		task->partial = read_call(target, task, text);
		if (!task->partial) {
			task->partial = find_call(look, &one);
			before = task->run_count;
		}
		if (!task->partial)
			return;
		ss_arena_copy(arena, capture, &one, memory, options, is_partial);
		uint64_t after = ss_task_read_run_count(target, task->tid, text);
		task->consistent = before == after && before != 0;
		if (task->in_call) {
			ss_look_again(look, &one);
			task->consistent = !task->left;
		}
		if (ss_task_is_watched(task))
			ss_task_enter(task, SS_TASK_SEEN);
		task->run_count = after;
		if (!task->consistent && i + 1 < TRIES)
			arena->used = mark;
	}
}

void ss_observe_tasks(struct ss_arena *arena, const struct ss_capture *capture,
		      const struct ss_target *target, struct ss_task_list *tasks,
		      const struct ss_process_memory *memory,
		      const struct ss_capture_options *options, struct ss_look *look)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		struct ss_stat stat;
		if (!is_left(task)) {
			identify(target, task, &text);
			continue;
		}
		if (!ss_target_read_stat(target, task->tid, &text, &stat)) {
			ss_task_enter(task, SS_TASK_GONE);
			continue;
		}
		/* Its state is not meaningful while a stop is pending. */
		if (task->phase != SS_TASK_INTERRUPTED)
			task->state = ss_task_state_of(task, target, &stat);
		memcpy(task->comm, stat.comm, sizeof(task->comm));
		/* An exiting thread cannot be attached any more. */
		bool ends = task->phase == SS_TASK_REFUSED && stat.exiting;
		if (ends || stat.state == 'Z' || stat.state == 'X') {
			ss_task_enter(task, task->tid == target->pid ? SS_TASK_ZOMBIE :
								       SS_TASK_GONE);
			continue;
		}
		if (task->phase == SS_TASK_REFUSED)
			ss_observe_tracer(target, task->tid, tasks);
		/* Of many threads, it would take long while late ones may stop. */
		if (!task->limited || stat.state != 'R')
			observe(arena, capture, target, task, memory, options, look,
				&text);
		task->reason = reason_of(tasks, task);
		if (task->phase == SS_TASK_REFUSED && !task->partial && !tasks->traced[0])
			ss_task_enter(task, SS_TASK_DENIED);
	}
}

static bool is_new_watched(const struct ss_tracee *task)
{
	return ss_task_is_watched(task) && task->stacks[0].bytes == NULL;
}

void ss_observe_copy(struct ss_arena *arena, const struct ss_capture *capture,
		     struct ss_task_list *tasks, const struct ss_process_memory *memory,
		     const struct ss_capture_options *options, unsigned freeze_round)
{
	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (!is_new_watched(task))
			continue;
		task->partial = true;
		task->lock.freeze_round = freeze_round;
		task->reason = reason_of(tasks, task);
	}
	ss_arena_copy(arena, capture, tasks, memory, options, is_new_watched);
}

/* It ran: earlier data is outdated. */
static void stop_watching(const struct ss_target *target, struct ss_tracee *task,
			  struct ss_buffer *text)
{
	struct ss_stat stat;

	ss_task_enter(task, SS_TASK_SEEN);
	task->partial = task->consistent = false;
	task->moved = true;
	task->before = NULL;
	task->in_call = false;
	task->turn = SS_TURN_OTHER;
	memset(task->stacks, 0, sizeof(task->stacks));
	task->lock = (struct ss_lock_copy){};
	task->reason = NULL;
	if (!ss_task_read_stat(task, target, text, &stat) || stat.state == 'X' ||
	    (stat.state == 'Z' && task->tid != target->pid)) {
		ss_task_enter(task, SS_TASK_GONE);
		return;
	}
	task->state = ss_task_state_of(task, target, &stat);
	task->processor = stat.processor;
	task->runs = stat.state == 'R';
	if (stat.state == 'Z')
		ss_task_enter(task, SS_TASK_ZOMBIE);
}

/* A thread that was stopped for the previous capture has run since. Without a copy it is not
   known yet whether its stack is the same. */
static bool has_same_stack(const struct ss_tracee *task)
{
	return !task->before || task->not_run || !task->stacks[SS_STACK_SP].bytes ||
	       ss_task_has_same_stack(task);
}

size_t ss_observe_check(const struct ss_target *target, struct ss_task_list *tasks,
			struct ss_look *look, size_t *fragile)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	size_t moved = 0;

	if (look)
		ss_look_again(look, tasks);
	if (fragile)
		*fragile = 0;
	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		if (task->phase != SS_TASK_WATCHED || (task->in_call && !look))
			continue;
		task->consistent =
			task->in_call ? !task->left :
					has_same_stack(task) &&
						ss_task_count_runs(task, target, &text) ==
							task->run_count;
		if (task->consistent) {
			ss_task_enter(task, SS_TASK_STEADY);
			continue;
		}
		stop_watching(target, task, &text);
		moved += task->phase == SS_TASK_SEEN;
		if (fragile)
			*fragile += task->phase == SS_TASK_SEEN && task->fragile;
	}
	return moved;
}
