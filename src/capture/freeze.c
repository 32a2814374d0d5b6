#include "capture/stop.h"

#include <time.h>

enum {
	SEIZE_PASSES = 16,
	APPEAR_PASSES = 8,
	TOGETHER = 32, /* threads that are all interrupted before any is waited for */
	/* Of sleepers that wake up on a running thread's CPU; measured. */
	STOPS_AT_ONCE = 16,
	RELEASES_AT_ONCE = 32,
	NAP_NS = 20 * 1000,
	/* Only what waits longer than this is looked at more closely. */
	LATE_NS = 2 * 1000 * 1000,
	LATE_STEP_NS = 5 * 1000 * 1000,
	/*
	 * How long threads that have stopped are held for those that have not: on a
	 * machine with more to run than CPUs, a runnable thread may have to wait for
	 * its turn before it can stop.
	 */
	ROUND_NS = 20 * 1000 * 1000,
};

void ss_freeze_seize(struct ss_freeze *freeze)
{
	struct ss_task_list *tasks = freeze->tasks;
	_cleanup_text_ struct ss_text text = {};
	size_t done = 0;

	for (int pass = 0; pass < SEIZE_PASSES; pass++) {
		size_t wanted = ss_tasks_count_now(freeze->target);
		if (!ss_tasks_reserve(tasks, tasks->items.count + wanted * 2 + 64))
			return;
		if (ss_tasks_scan(tasks, freeze->target) == 0 && tasks->unseen == 0)
			return;
		for (; done < tasks->items.count; done++) {
			struct ss_task *task = &tasks->items.items[done];
			ss_task_read(task, freeze->target, freeze->options, &text);
			if (task->phase == SS_TASK_SEEN && !task->watched)
				ss_stop_seize(task);
		}
	}
}

void ss_freeze_seize_again(struct ss_freeze *freeze, bool all)
{
	_cleanup_text_ struct ss_text text = {};

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		/* It has moved a part more, and mostly waits in the same call again. */
		if (task->phase == SS_TASK_SEEN && task->fragile && !task->watched)
			ss_task_read(task, freeze->target, freeze->options, &text);
		if ((all && task->phase == SS_TASK_RELEASED) ||
		    (task->phase == SS_TASK_SEEN && !task->watched))
			ss_stop_seize(task);
	}
	freeze->rounds = all ? 0 : freeze->rounds + 1;
}

/* Takes in what has stopped of a class. How many have not, and are waited for. */
static size_t poll_class(struct ss_freeze *freeze, bool runs)
{
	size_t late = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_INTERRUPTED || task->runs != runs)
			continue;
		ss_stop_poll(freeze, task);
		late += task->phase == SS_TASK_INTERRUPTED && !task->slow;
	}
	return late;
}

static size_t poll_all(struct ss_freeze *freeze)
{
	return poll_class(freeze, true) + poll_class(freeze, false);
}

/* Waits until all of a class have stopped, but for those that will not. */
static void wait_class(struct ss_freeze *freeze, bool runs)
{
	uint64_t look_ns = ss_freeze_now() + LATE_NS;
	size_t late;

	while ((late = poll_class(freeze, runs)) > 0) {
		uint64_t now = ss_freeze_now();
		if (now >= freeze->round_ns)
			return;
		/* Few only: looking at many takes longer than they need to stop. */
		if (late <= SS_STOP_FEW && now >= look_ns) {
			ss_stop_look_at_late(freeze);
			look_ns = ss_freeze_now() + LATE_STEP_NS;
		}
		ss_stop_wait(freeze, late, freeze->round_ns);
	}
}

/* Sleepers that wake up where a thread of the target runs hold it up: only some at a
   time, so that it gets to run in between. */
static void interrupt_class(struct ss_freeze *freeze, bool runs)
{
	unsigned disturbing = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_SEIZED || task->runs != runs)
			continue;
		ss_stop_interrupt(task);
		disturbing += task->disturbs;
		if (task->disturbs && disturbing % STOPS_AT_ONCE == 0)
			wait_class(freeze, runs);
	}
}

static size_t count_alive(const struct ss_task_list *tasks)
{
	size_t alive = 0;

	for (size_t i = 0; i < tasks->items.count; i++)
		alive += tasks->items.items[i].phase != SS_TASK_GONE;
	return alive;
}

/* Threads that were made between the last listing and the stop. */
static void stop_newcomers(struct ss_freeze *freeze)
{
	struct ss_task_list *tasks = freeze->tasks;

	for (int pass = 0; pass < APPEAR_PASSES; pass++) {
		if (ss_tasks_count_now(freeze->target) <= count_alive(tasks) ||
		    ss_freeze_now() >= freeze->round_ns)
			return;
		size_t first = tasks->items.count;
		if (ss_tasks_scan(tasks, freeze->target) == 0)
			return;
		for (size_t i = first; i < tasks->items.count; i++) {
			tasks->items.items[i].runs = true;
			ss_stop_seize(&tasks->items.items[i]);
		}
		interrupt_class(freeze, true);
		wait_class(freeze, true);
	}
}

/* Most uninterruptible sleep is short: a page fault, a lock of the kernel's. */
static void look_again_at_slow(struct ss_freeze *freeze)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_stat stat;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_SEIZED || !task->slow ||
		    !ss_target_read_stat(freeze->target, task->tid, &text, &stat))
			continue;
		task->state = stat.state;
		task->slow = stat.state == 'D';
		task->runs = stat.state == 'R';
	}
}

void ss_freeze_stop(struct ss_freeze *freeze)
{
	uint64_t timeout_ns = (uint64_t)freeze->options->timeout_ms * 1000000u;

	look_again_at_slow(freeze);
	freeze->begin_ns = ss_freeze_now();
	if (!freeze->deadline_ns)
		freeze->deadline_ns = freeze->begin_ns + timeout_ns;
	freeze->round_ns =
		SS_MIN(freeze->deadline_ns, freeze->begin_ns + (uint64_t)ROUND_NS);
	interrupt_class(freeze, false);
	/* Few sleepers stop in less time than another round of waiting takes. */
	if (freeze->tasks->items.count > TOGETHER)
		wait_class(freeze, false);
	interrupt_class(freeze, true);
	wait_class(freeze, false);
	wait_class(freeze, true);
	if (!freeze->options->filter)
		stop_newcomers(freeze);
}

/* Whether a thread is waited for, or has stopped without being waited for. */
static bool any_late(struct ss_freeze *freeze)
{
	size_t late = poll_all(freeze);

	for (size_t i = 0; i < freeze->tasks->items.count && !late; i++)
		late += freeze->tasks->items.items[i].phase == SS_TASK_STOPPED;
	return late > 0;
}

bool ss_freeze_stop_late(struct ss_freeze *freeze)
{
	uint64_t now = ss_freeze_now();

	if (now >= freeze->deadline_ns || !any_late(freeze))
		return false;
	freeze->rounds++;
	freeze->round_ns = SS_MIN(now + ROUND_NS, freeze->deadline_ns);
	wait_class(freeze, true);
	wait_class(freeze, false);
	return true;
}

static void nap(void)
{
	struct timespec ts = { .tv_nsec = NAP_NS };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
}

void ss_freeze_release(struct ss_freeze *freeze, bool runs)
{
	unsigned disturbing = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_STOPPED || task->runs != runs)
			continue;
		ss_stop_release(freeze, task);
		disturbing += task->disturbs;
		if (task->disturbs && disturbing % RELEASES_AT_ONCE == 0)
			nap();
	}
	freeze->end_ns = ss_freeze_now();
}

static void pass_on(struct ss_freeze *freeze, ss_freeze_copier *copy, void *data)
{
	bool any = false;

	for (size_t i = 0; i < freeze->tasks->items.count && !any; i++)
		any = freeze->tasks->items.items[i].phase == SS_TASK_STOPPED;
	if (!any)
		return;
	copy(data);
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_STOPPED)
			continue;
		ss_stop_release(freeze, task);
		freeze->held_ns += task->stopped_ns;
		freeze->held_max_ns = SS_MAX(freeze->held_max_ns, task->stopped_ns);
	}
}

void ss_freeze_each(struct ss_freeze *freeze, ss_freeze_copier *copy, void *data)
{
	uint64_t look_ns = ss_freeze_now() + LATE_NS;
	unsigned batch = 0;
	size_t late;

	freeze->deadline_ns =
		ss_freeze_now() + (uint64_t)freeze->options->timeout_ms * 1000000u;
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_SEIZED)
			continue;
		ss_stop_interrupt(task);
		if (++batch % STOPS_AT_ONCE != 0)
			continue;
		(void)poll_all(freeze);
		pass_on(freeze, copy, data);
	}
	for (;;) {
		late = poll_all(freeze);
		pass_on(freeze, copy, data);
		uint64_t now = ss_freeze_now();
		if (late == 0 || now >= freeze->deadline_ns)
			return;
		if (late <= SS_STOP_FEW && now >= look_ns) {
			ss_stop_look_at_late(freeze);
			look_ns = now + LATE_STEP_NS;
		}
		ss_stop_wait(freeze, late, freeze->deadline_ns);
	}
}

void ss_freeze_finish(struct ss_freeze *freeze)
{
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_INTERRUPTED)
			continue;
		ss_stop_poll(freeze, task);
		if (task->phase != SS_TASK_STOPPED)
			continue;
		/* Too late to be copied: it was not there when the others were. */
		freeze->stopped -= task->stopped_ns == 0;
		ss_stop_release(freeze, task);
		task->phase = SS_TASK_INTERRUPTED;
	}
	freeze->held_ns += freeze->end_ns - freeze->begin_ns;
}
