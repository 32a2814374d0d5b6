/* How long threads stand still at most, with times and threads that are made up. */

#include "unit.h"

#include "base/clock.h"
#include "capture/freeze.h"

enum {
	THREADS = 200,
	ROUND_NS = 20 * SS_NS_PER_MS,
	STILL_NS = 5 * SS_NS_PER_MS, /* a running thread, with the copies */
	COPY_NS = 10 * 1000,	     /* of one */
};

static const uint64_t now_ns = SS_NS_PER_SECOND;

struct frozen {
	struct ss_target target;
	struct ss_tracee tasks[THREADS];
	struct ss_task_list list;
	struct ss_freeze freeze;
};

/* count threads, which were stopped 10 us after each other. */
static void begin(struct frozen *frozen, size_t count, bool run)
{
	*frozen =
		(struct frozen){ .list.items = { .items = frozen->tasks, .count = count },
				 .freeze = { .target = &frozen->target,
					     .tasks = &frozen->list,
					     .round_ns = now_ns + ROUND_NS } };
	for (size_t i = 0; i < count; i++)
		frozen->tasks[i] =
			(struct ss_tracee){ .tid = (pid_t)i + 1,
					    .phase = SS_TASK_STOPPED,
					    .runs = run,
					    .running_ns = now_ns + i * COPY_NS };
}

TEST(test_sleeping)
{
	struct frozen frozen;

	begin(&frozen, THREADS, false);
	assert_int_equal(ss_freeze_find_limit(&frozen.freeze), now_ns + ROUND_NS);
	/* One that runs, and has not stopped, does not stand still. */
	frozen.tasks[0].runs = true;
	frozen.tasks[0].phase = SS_TASK_INTERRUPTED;
	assert_int_equal(ss_freeze_find_limit(&frozen.freeze), now_ns + ROUND_NS);
}

/* The first that has stopped is released within the bound when all have been copied. */
TEST(test_running)
{
	struct frozen frozen;

	for (size_t count = 1; count <= THREADS; count++) {
		begin(&frozen, count, true);
		uint64_t limit_ns = ss_freeze_find_limit(&frozen.freeze);
		assert_in_range(limit_ns, now_ns + SS_NS_PER_MS,
				now_ns + STILL_NS - count * COPY_NS);
	}
	/* It does not matter in which round it stopped. */
	begin(&frozen, 2, true);
	uint64_t limit_ns = ss_freeze_find_limit(&frozen.freeze);
	frozen.freeze.round_ns += ROUND_NS;
	assert_int_equal(ss_freeze_find_limit(&frozen.freeze), limit_ns);
	/* The round ends before. */
	frozen.freeze.round_ns = now_ns + 1;
	assert_int_equal(ss_freeze_find_limit(&frozen.freeze), now_ns + 1);
}

/* Threads that its own tracer holds are not released. */
TEST(test_held)
{
	struct frozen frozen;

	begin(&frozen, THREADS, true);
	frozen.target.held = true;
	assert_int_equal(ss_freeze_find_limit(&frozen.freeze), now_ns + ROUND_NS);
}
