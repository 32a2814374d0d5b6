

#include "unit.h"

#include "base/clock.h"
#include "cli/top_jobs.h"

static const uint64_t wall_ns = 3 * SS_NS_PER_SECOND;
static const uint64_t budget_ns = 3 * SS_NS_PER_SECOND / 50;

TEST(test_dear)
{
	struct ss_top_rate rate = {};

	assert_false(ss_top_rate_limit(&rate, 99, budget_ns, wall_ns));
	assert_int_equal(rate.limit, 0);
	assert_true(ss_top_rate_limit(&rate, 99, budget_ns * 4, wall_ns));
	assert_int_equal(rate.limit, 24);
	/* Just above the limit: not by one. */
	assert_true(ss_top_rate_limit(&rate, 24, budget_ns + budget_ns / 50, wall_ns));
	assert_int_equal(rate.limit, 18);
	assert_true(ss_top_rate_limit(&rate, 18, budget_ns * 100, wall_ns));
	assert_int_equal(rate.limit, SS_TOP_RATE_MIN);
	assert_false(ss_top_rate_limit(&rate, SS_TOP_RATE_MIN, budget_ns * 9, wall_ns));
	assert_int_equal(rate.limit, SS_TOP_RATE_MIN);
}

/* After a burst of load the rate grows again, but not by a single cheap measurement. */
TEST(test_cheap)
{
	struct ss_top_rate rate = { .limit = SS_TOP_RATE_MIN };

	for (int i = 0; i < 4; i++)
		assert_false(ss_top_rate_limit(&rate, 5, budget_ns / 9, wall_ns));
	assert_false(ss_top_rate_limit(&rate, 5, budget_ns / 2, wall_ns));
	for (int i = 0; i < 4; i++)
		assert_false(ss_top_rate_limit(&rate, 5, budget_ns / 9, wall_ns));
	assert_int_equal(rate.limit, 5);
	assert_false(ss_top_rate_limit(&rate, 5, budget_ns / 9, wall_ns));
	assert_int_equal(rate.limit, 10);
	for (int i = 0; i < 5; i++)
		assert_false(ss_top_rate_limit(&rate, 50, 0, wall_ns));
	assert_int_equal(rate.limit, 0);
}
