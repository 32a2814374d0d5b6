#include "cli/top_rate.h"

#include "base/cleanup.h"

enum {
	COST = 50, /* the recorder costs at most a 50th of the time, except at the minimum */
	CHEAP = 4,	/* a quarter of this allows for twice the rate, */
	CHEAP_TIMES = 5 /* if measured so often */
};

bool ss_top_rate_limit(struct ss_top_rate *rate, uint64_t now, uint64_t cpu_ns,
		       uint64_t wall_ns)
{
	uint64_t cost_ns = cpu_ns * COST;

	if (cost_ns > wall_ns) {
		rate->cheap = 0;
		if (now <= SS_TOP_RATE_MIN)
			return false;
		/* Each change loses the samples so far: small steps are not worth it. */
		rate->limit = SS_MAX(SS_MIN(now * wall_ns / cost_ns, now * 3 / 4),
				     (uint64_t)SS_TOP_RATE_MIN);
		return true;
	}
	rate->cheap = rate->limit && cost_ns <= wall_ns / CHEAP ? rate->cheap + 1 : 0;
	if (rate->cheap < CHEAP_TIMES)
		return false;
	rate->cheap = 0;
	rate->limit = now * 2 < SS_TOP_RATE ? now * 2 : 0;
	return false;
}
