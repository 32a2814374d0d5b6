#include "sample/pace.h"

#include "base/cleanup.h"

enum {
	GROUP_NS = 10 * 1000 * 1000, /* of ticks with the same interval, at least */
	GROUP_MIN = 10,
	PERMILLE = 1000,
	LEAST = 750, /* of the period */
	SPAN = 501,
	LAG_PART =
		16, /* of the range of times of reading, before it: an interrupt may be late */
};

void ss_pace_init(struct ss_pace *pace, uint64_t period_ns, uint64_t now_ns)
{
	*pace = (struct ss_pace){
		.period_ns = period_ns,
		.base_ns = now_ns,
		.interval_ns = period_ns,
		.random = now_ns | 1, /* not zero; no secret */
	};
}

uint64_t ss_pace_next_ns(const struct ss_pace *pace)
{
	return pace->base_ns + (pace->counted + 1) * pace->interval_ns;
}

/* xorshift (Marsaglia) */
static uint64_t next_random(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

uint64_t ss_pace_reading_ns(struct ss_pace *pace, uint64_t max_ns)
{
	uint64_t range_ns = SS_MAX(SS_MIN(pace->interval_ns, max_ns), (uint64_t)1);

	return ss_pace_next_ns(pace) + range_ns / LAG_PART +
	       next_random(&pace->random) % range_ns;
}

uint64_t ss_pace_advance(struct ss_pace *pace, uint64_t now_ns, uint64_t *first_ns)
{
	uint64_t since = now_ns > pace->base_ns ? now_ns - pace->base_ns : 0;
	uint64_t count = since / pace->interval_ns;
	uint64_t before = pace->counted;

	*first_ns = ss_pace_next_ns(pace);
	pace->counted = SS_MAX(count, before);
	return pace->counted - before;
}

bool ss_pace_renew(struct ss_pace *pace, uint64_t now_ns)
{
	uint64_t count = SS_MAX(GROUP_NS / pace->period_ns, (uint64_t)GROUP_MIN);
	uint64_t last_ns = pace->base_ns + pace->counted * pace->interval_ns;
	uint64_t permille = LEAST + next_random(&pace->random) % SPAN;

	if (pace->counted < count)
		return false;
	/* The time since the last tick belongs to the new interval. */
	uint64_t span = count * pace->period_ns / PERMILLE * permille;
	uint64_t since = now_ns > last_ns ? now_ns - last_ns : 0;
	pace->interval_ns =
		SS_MAX(span > since ? (span - since) / count : 0, pace->period_ns / 2);
	pace->base_ns = now_ns;
	pace->counted = 0;
	return true;
}

void ss_pace_set(struct ss_pace *pace, uint64_t now_ns)
{
	pace->base_ns = now_ns;
}
