/* The intervals of the CPU clock. */

#include "unit.h"

#include "sample/pace.h"

enum { US = 1000, MS = 1000 * US };

TEST(test_counts)
{
	struct ss_pace pace;
	uint64_t first_ns = 0;

	ss_pace_init(&pace, 10 * MS, 1000);
	assert_int_equal(ss_pace_next_ns(&pace), 1000 + 10 * MS);
	assert_int_equal(ss_pace_advance(&pace, 1000 + 10 * MS - 1, &first_ns), 0);
	assert_int_equal(ss_pace_advance(&pace, 1000 + 10 * MS, &first_ns), 1);
	assert_int_equal(first_ns, 1000 + 10 * MS);
	assert_int_equal(ss_pace_advance(&pace, 1000 + 10 * MS, &first_ns), 0);
	/* The reader is late: no tick is missed. */
	assert_int_equal(ss_pace_advance(&pace, 1000 + 45 * MS, &first_ns), 3);
	assert_int_equal(first_ns, 1000 + 20 * MS);
	assert_int_equal(ss_pace_next_ns(&pace), 1000 + 50 * MS);
	/* The clock went back. */
	assert_int_equal(ss_pace_advance(&pace, 0, &first_ns), 0);
}

/* Its mean is the period, whatever time the reader needs; it varies by a quarter; it is
   set at most a hundred times a second. */
static void check_intervals(uint64_t period_ns, uint64_t lag_ns)
{
	struct ss_pace pace;
	uint64_t now_ns = (uint64_t)1 << 40;
	const uint64_t begin_ns = now_ns;
	uint64_t least_ns = UINT64_MAX;
	uint64_t most_ns = 0;
	uint64_t ticks = 0;
	uint64_t set = 0;
	uint64_t first_ns;

	ss_pace_init(&pace, period_ns, now_ns);
	while (ticks < 20000) {
		now_ns = ss_pace_next_ns(&pace) + lag_ns;
		ticks += ss_pace_advance(&pace, now_ns, &first_ns);
		if (!ss_pace_renew(&pace, now_ns))
			continue;
		set++;
		least_ns = pace.interval_ns < least_ns ? pace.interval_ns : least_ns;
		most_ns = pace.interval_ns > most_ns ? pace.interval_ns : most_ns;
	}
	uint64_t mean_ns = (now_ns - begin_ns) / ticks;
	assert_in_range(mean_ns, period_ns / 100 * 97, period_ns / 100 * 103);
	assert_in_range(least_ns, period_ns / 2, period_ns / 100 * 80);
	assert_in_range(most_ns, period_ns / 100 * 118, period_ns / 100 * 126);
	assert_true(set <= ticks / 10);
	/* An interval is at least three quarters of the period. */
	assert_true(set <= (now_ns - begin_ns) / (10 * MS) * 4 / 3 + 1 ||
		    period_ns > 10 * MS);
}

TEST(test_intervals)
{
	check_intervals(10 * MS, 200 * US);
	check_intervals(1 * MS, 250 * US);
	check_intervals(100 * US, 25 * US);
	check_intervals(1000 * MS, 1 * MS);
}

/* Samples are read at all times of an interval alike, within the limit. */
static void check_reading(uint64_t period_ns, uint64_t max_ns, uint64_t range_ns)
{
	enum { TRIES = 4000, PARTS = 4 };
	unsigned counts[PARTS] = {};
	struct ss_pace pace;

	ss_pace_init(&pace, period_ns, MS);
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t lag_ns =
			ss_pace_reading_ns(&pace, max_ns) - ss_pace_next_ns(&pace);
		assert_in_range(lag_ns, range_ns / 16, range_ns / 16 + range_ns - 1);
		lag_ns -= range_ns / 16;
		counts[lag_ns * PARTS / range_ns]++;
	}
	for (unsigned i = 0; i < PARTS; i++)
		assert_in_range(counts[i], TRIES / PARTS * 4 / 5, TRIES / PARTS * 6 / 5);
}

TEST(test_reading)
{
	check_reading(1 * MS, 2 * MS, 1 * MS);
	check_reading(10 * MS, 2 * MS, 2 * MS);
}
