#include "capture/observe.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 3 };

static bool is_left(const struct ss_task *task)
{
	return task->phase == SS_TASK_SEEN || task->phase == SS_TASK_INTERRUPTED ||
	       task->phase == SS_TASK_REFUSED;
}

static bool is_partial(const struct ss_task *task)
{
	return task->partial;
}

/* A thread that appeared in the freeze was not asked for its name there. */
static void read_name(const struct ss_target *target, struct ss_task *task,
		      struct ss_text *text)
{
	struct ss_stat stat;

	if (task->phase == SS_TASK_RELEASED && task->state == '?' &&
	    ss_target_read_stat(target, task->tid, text, &stat))
		memcpy(task->comm, stat.comm, sizeof(task->comm));
}

/* How often the thread was put on a CPU: third figure of schedstat (sched-stats.rst). */
static uint64_t read_run_count(const struct ss_target *target, pid_t tid,
			       struct ss_text *text)
{
	unsigned long long run_ns;
	unsigned long long wait_ns;
	unsigned long long count;

	if (!ss_target_read_task(target, tid, "schedstat", text) ||
	    sscanf(text->bytes, "%llu %llu %llu", &run_ns, &wait_ns, &count) != 3)
		return 0;
	return count;
}

static bool read_call(const struct ss_target *target, struct ss_task *task,
		      struct ss_text *text)
{
	return ss_target_read_task(target, task->tid, "syscall", text) &&
	       ss_syscall_parse(text->bytes, text->size, &task->call) &&
	       task->call.kind != SS_SYSCALL_RUNNING && task->call.sp != 0;
}

/* NULL: that it was not stopped was asked for. */
static const char *reason_of(const struct ss_task *task)
{
	if (task->slow)
		return "in uninterruptible sleep (D): read without being stopped";
	if (task->phase == SS_TASK_REFUSED)
		return "held by another tracer: read without being stopped";
	if (task->phase == SS_TASK_INTERRUPTED)
		return "did not stop in time: read without being stopped";
	return NULL;
}

/* Reads one thread until it did not run in between, a few times. */
static void observe(struct ss_arena *arena, const struct ss_capture *capture,
		    const struct ss_target *target, struct ss_task *task,
		    const struct ss_memory *memory,
		    const struct ss_capture_options *options, struct ss_text *text)
{
	struct ss_task_list one = { .items = { .items = task, .count = 1 } };

	for (int i = 0; i < TRIES && !task->consistent; i++) {
		size_t mark = arena->used;
		memset(task->stacks, 0, sizeof(task->stacks)); /* of an earlier try */
		uint64_t before = read_run_count(target, task->tid, text);
		task->partial = read_call(target, task, text);
		if (!task->partial)
			return;
		ss_arena_copy(arena, capture, &one, memory, options, is_partial);
		uint64_t after = read_run_count(target, task->tid, text);
		task->consistent = before == after && before != 0;
		if (!task->consistent && i + 1 < TRIES)
			arena->used = mark;
	}
}

void ss_observe_tasks(struct ss_arena *arena, const struct ss_capture *capture,
		      const struct ss_target *target, struct ss_task_list *tasks,
		      const struct ss_memory *memory,
		      const struct ss_capture_options *options)
{
	_cleanup_text_ struct ss_text text = {};

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_task *task = &tasks->items.items[i];
		struct ss_stat stat;
		if (!is_left(task)) {
			read_name(target, task, &text);
			continue;
		}
		if (!ss_target_read_stat(target, task->tid, &text, &stat)) {
			task->phase = SS_TASK_GONE;
			continue;
		}
		/* On its way to a stop it is not in a state of its own. */
		if (task->phase != SS_TASK_INTERRUPTED)
			task->state = stat.state;
		memcpy(task->comm, stat.comm, sizeof(task->comm));
		if (stat.state == 'Z' || stat.state == 'X') {
			task->phase = task->tid == target->pid ? SS_TASK_ZOMBIE :
								 SS_TASK_GONE;
			continue;
		}
		observe(arena, capture, target, task, memory, options, &text);
		task->reason = reason_of(task);
	}
}
