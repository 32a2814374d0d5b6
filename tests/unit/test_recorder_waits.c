/*
 * The time for looking up what threads of a recording wait for: all processes share it, and each
 * has its turn.
 */

#include "unit.h"

#include "sample/recorder_process.h"

enum { PROCESSES = 3, TICKS = 1000 };

static const uint64_t tick_ns = 10 * 1000 * 1000;
static const uint64_t lookup_ns = 5 * 1000 * 1000;

/* All processes ask at each tick. */
TEST(test_budget)
{
	struct ss_recorder_waits waits[PROCESSES] = {};
	struct ss_recorder_waits_budget budget = {};
	unsigned looked[PROCESSES] = {};
	uint64_t now_ns = 1;

	for (int tick = 0; tick < TICKS; tick++, now_ns += tick_ns) {
		ss_recorder_waits_budget_begin(&budget);
		for (int i = 0; i < PROCESSES; i++) {
			if (!ss_recorder_waits_may_look(&waits[i], &budget, now_ns))
				continue;
			looked[i]++;
			budget.spent_ns += lookup_ns;
		}
	}
	assert_in_range(budget.spent_ns, TICKS * tick_ns / 100,
			TICKS * tick_ns / 100 + 6 * lookup_ns);
	for (int i = 1; i < PROCESSES; i++)
		assert_in_range(looked[i], looked[0] - 2, looked[0] + 2);
}

/* One process that asks for nothing more leaves the time to others. */
TEST(test_enough)
{
	struct ss_recorder_waits waits[2] = {};
	struct ss_recorder_waits_budget budget = {};

	for (int tick = 0; tick < 10; tick++) {
		ss_recorder_waits_budget_begin(&budget);
		assert_true(ss_recorder_waits_may_look(&waits[0], &budget, 1));
		assert_true(ss_recorder_waits_may_look(&waits[1], &budget, 1));
	}
}
