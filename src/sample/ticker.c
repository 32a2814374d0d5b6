#include "sample/ticker.h"

enum { JITTER_PART = 4 };

void ss_ticker_init(struct ss_ticker *ticker, uint64_t period_ns, uint64_t now_ns)
{
	*ticker = (struct ss_ticker){
		.period_ns = period_ns,
		.due_ns = now_ns,
		.random = now_ns | 1, /* not zero; no secret */
	};
}

/* xorshift (Marsaglia) */
uint64_t ss_ticker_next_ns(struct ss_ticker *ticker)
{
	uint64_t span = ticker->period_ns / JITTER_PART + 1;

	ticker->random ^= ticker->random << 13;
	ticker->random ^= ticker->random >> 7;
	ticker->random ^= ticker->random << 17;
	return ticker->due_ns + ticker->random % span;
}

uint64_t ss_ticker_advance(struct ss_ticker *ticker, uint64_t now_ns)
{
	uint64_t period = ticker->period_ns;
	uint64_t missed =
		now_ns > ticker->due_ns + period ? (now_ns - ticker->due_ns) / period : 0;

	ticker->due_ns += (missed + 1) * period;
	return missed;
}
