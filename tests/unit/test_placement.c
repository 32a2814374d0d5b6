/* The capture thread is at high priority before it moves to another CPU, and until it may
   leave that CPU again: at normal priority it would wait for its turn on a busy CPU. */
#include "unit.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "capture/freeze.h"

static int policy = SCHED_OTHER;
static int moves;
static int slow_moves;

/* In place of those of the C library. */
int sched_setscheduler(pid_t pid, int new_policy, const struct sched_param *param)
{
	(void)pid;
	(void)param;
	policy = new_policy;
	return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus)
{
	(void)pid;
	(void)size;
	(void)cpus;
	moves++;
	slow_moves += policy != SCHED_FIFO;
	return 0;
}

TEST(test_order)
{
	struct ss_placement placement = {};
	struct ss_task_list tasks = {};
	const struct ss_target target = {};

	ss_placement_prepare(&placement);
	assert_true(placement.known);
	moves = slow_moves = 0;
	ss_placement_enter(&placement, &tasks, &target);
	assert_true(placement.cpu >= 0);
	assert_int_equal(policy, SCHED_FIFO);
	ss_placement_leave(&placement);
	assert_int_equal(policy, SCHED_OTHER);
	assert_int_equal(moves, 2);
	assert_int_equal(slow_moves, 0);
}
