#include "capture/freeze.h"

#include <sched.h>
#include <string.h>

#include "base/search.h"

enum { RUNNING_MAX = 64 };

/* Chosen, or about to be: running threads come last. */
static bool will_stop(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_CHOSEN ||
	       (task->phase == SS_TASK_SEEN && task->runs);
}

static bool is_sleeper(const struct ss_tracee *task)
{
	return task->phase == SS_TASK_CHOSEN && !task->runs;
}

/* Updates the CPUs of running threads, which move while thousands of threads are
   read. More than RUNNING_MAX threads occupy all CPUs anyway. */
static void find_running(struct ss_task_list *tasks, const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	unsigned left = RUNNING_MAX;

	for (size_t i = 0; i < tasks->items.count && left > 0; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		struct ss_stat stat;
		if (!will_stop(task) || !task->runs)
			continue;
		left--;
		if (ss_target_read_stat(target, task->tid, &text, &stat))
			task->processor = stat.processor;
	}
}

/* Threads of the target by CPU. */
struct usage {
	unsigned sleepers[CPU_SETSIZE];
	unsigned running[CPU_SETSIZE];
};

static void count_usage(const struct ss_task_list *tasks, struct usage *usage)
{
	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_tracee *task = &tasks->items.items[i];
		if (!will_stop(task) || task->processor < 0 ||
		    task->processor >= CPU_SETSIZE)
			continue;
		usage->sleepers[task->processor] += !task->runs;
		usage->running[task->processor] += task->runs;
	}
}

/* The allowed CPU without a running thread that has the most sleeping threads, or -1. */
static int choose_cpu(const struct usage *usage, const cpu_set_t *allowed)
{
	int best = -1;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET((size_t)cpu, allowed) || usage->running[cpu])
			continue;
		if (best < 0 || usage->sleepers[cpu] > usage->sleepers[best])
			best = cpu;
	}
	return best;
}

static void move_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	(void)sched_setaffinity(0, sizeof(one),
				&one); /* if it fails, the freeze is slower */
}

/* Marks sleeping threads that would wake up on the CPU of a running one. Returns their
   number. */
static size_t mark_disturbing(struct ss_task_list *tasks, const struct usage *usage)
{
	size_t count = 0;

	for (size_t i = 0; i < tasks->items.count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		task->disturbs = is_sleeper(task) && task->processor >= 0 &&
				 task->processor < CPU_SETSIZE &&
				 usage->running[task->processor] > 0;
		count += task->disturbs;
	}
	return count;
}

/* Sort key of a task: its rank among its kind, divided by the size of that kind, so that
   both kinds are spread evenly. */
struct place {
	double share;
	struct ss_tracee *task;
};

SS_DEFINE_COMPARE(compare_places, struct place, share)

static void interleave(struct ss_task_list *tasks)
{
	size_t count = tasks->items.count;
	_cleanup_free_ struct place *places = calloc(count, sizeof(*places));
	_cleanup_free_ struct ss_tracee *copy = calloc(count, sizeof(*copy));
	size_t totals[2] = {};
	size_t ranks[2] = {};

	if (!places || !copy)
		return;
	for (size_t i = 0; i < count; i++)
		totals[tasks->items.items[i].disturbs]++;
	for (size_t i = 0; i < count; i++) {
		struct ss_tracee *task = &tasks->items.items[i];
		size_t kind = task->disturbs;
		places[i].share = (double)ranks[kind]++ / (double)totals[kind];
		places[i].task = task;
	}
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		copy[i] = *places[i].task;
	memcpy(tasks->items.items, copy, count * sizeof(*copy));
}

void ss_placement_prepare(struct ss_placement *placement)
{
	int here = sched_getcpu();

	placement->cpu = -1;
	placement->known = sched_getaffinity(0, sizeof(placement->allowed),
					     &placement->allowed) == 0;
	if (placement->known && here >= 0)
		move_to(here);
}

void ss_placement_restore(const struct ss_placement *placement)
{
	/* Fails only if the cpuset has shrunk; its CPUs take precedence. */
	if (placement->known)
		(void)sched_setaffinity(0, sizeof(placement->allowed),
					&placement->allowed);
}

void ss_placement_follow(const struct ss_placement *placement)
{
	if (placement->cpu < 0)
		return;
	move_to(placement->cpu);
	ss_placement_restore(placement);
}

void ss_placement_enter(struct ss_placement *placement, struct ss_task_list *tasks,
			const struct ss_target *target)
{
	struct sched_param param = { .sched_priority = 1 };
	struct usage usage = {};

	find_running(tasks, target);
	count_usage(tasks, &usage);
	if (placement->known)
		placement->cpu = choose_cpu(&usage, &placement->allowed);
	if (mark_disturbing(tasks, &usage) > 0)
		interleave(tasks);
	/* Needs CAP_SYS_NICE; without it the freeze takes longer. First: at normal priority a
	   thread that moves to a busy CPU waits there for its turn, for seconds at a load
	   of 30. */
	(void)sched_setscheduler(0, SCHED_FIFO, &param);
	if (placement->cpu >= 0)
		move_to(placement->cpu);
	else
		ss_placement_restore(placement);
}

void ss_placement_leave(const struct ss_placement *placement)
{
	struct sched_param param = {};

	/* First: at normal priority, it may have to wait on this CPU. */
	ss_placement_restore(placement);
	(void)sched_setscheduler(0, SCHED_OTHER, &param); /* always allowed */
}
