#include "capture/placement.h"

#include <sched.h>
#include <string.h>

static bool is_sleeper(const struct ss_task *task)
{
	return task->phase == SS_TASK_SEIZED && !task->runs;
}

/* The allowed CPU with the most sleepers, or -1 if there are none on any. */
static int busiest_cpu(const struct ss_task_list *tasks, const cpu_set_t *allowed)
{
	unsigned counts[CPU_SETSIZE] = {};
	int best = -1;

	for (size_t i = 0; i < tasks->items.count; i++) {
		const struct ss_task *task = &tasks->items.items[i];
		int cpu = task->processor;
		if (!is_sleeper(task) || cpu < 0 || cpu >= CPU_SETSIZE ||
		    !CPU_ISSET((size_t)cpu, allowed))
			continue;
		counts[cpu]++;
		if (best < 0 || counts[cpu] > counts[best])
			best = cpu;
	}
	return best;
}

/* Where a task belongs in the order: its rank among its own kind, as a share of all
   of them; so that the kinds are spread evenly over each other. */
struct place {
	double share;
	struct ss_task *task;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a;
	const struct place *y = b;

	return (x->share > y->share) - (x->share < y->share);
}

static void interleave(struct ss_task_list *tasks, int cpu)
{
	size_t count = tasks->items.count;
	_cleanup_free_ struct place *places = calloc(count, sizeof(*places));
	_cleanup_free_ struct ss_task *copy = calloc(count, sizeof(*copy));
	size_t totals[2] = {};
	size_t ranks[2] = {};

	if (!places || !copy)
		return;
	for (size_t i = 0; i < count; i++)
		totals[tasks->items.items[i].processor == cpu]++;
	for (size_t i = 0; i < count; i++) {
		struct ss_task *task = &tasks->items.items[i];
		size_t kind = task->processor == cpu;
		places[i].share = (double)ranks[kind]++ / (double)totals[kind];
		places[i].task = task;
	}
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		copy[i] = *places[i].task;
	memcpy(tasks->items.items, copy, count * sizeof(*copy));
}

void ss_placement_enter(struct ss_task_list *tasks)
{
	struct sched_param param = { .sched_priority = 1 };
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
		int cpu = busiest_cpu(tasks, &allowed);
		cpu_set_t one;
		CPU_ZERO(&one);
		if (cpu >= 0) {
			CPU_SET((size_t)cpu, &one);
			(void)sched_setaffinity(0, sizeof(one), &one); /* or stay */
			interleave(tasks, cpu);
		}
	}
	/* Refused without CAP_SYS_NICE: the freeze is longer then, not wrong. */
	(void)sched_setscheduler(0, SCHED_FIFO, &param);
}

void ss_placement_leave(void)
{
	struct sched_param param = {};

	(void)sched_setscheduler(0, SCHED_OTHER, &param); /* always allowed */
}
