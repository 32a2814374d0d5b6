/*
 * When the next tick is due. Time is passed in: nothing here reads a clock.
 */
#ifndef SS_SAMPLE_TICKER_H
#define SS_SAMPLE_TICKER_H

#include <stdint.h>

struct ss_ticker {
	uint64_t period_ns; /* not 0 */
	uint64_t due_ns;    /* CLOCK_MONOTONIC; of the next tick, without jitter */
	uint64_t random;
};

/* The first tick is due now. */
void ss_ticker_init(struct ss_ticker *ticker, uint64_t period_ns, uint64_t now_ns);

/* The time of the next tick, with jitter so that ticks do not synchronize with periodic
   work of the target. */
uint64_t ss_ticker_next_ns(struct ss_ticker *ticker);

/* A tick begins: advances to the next period that is not over. Returns how many were
   missed. */
uint64_t ss_ticker_advance(struct ss_ticker *ticker, uint64_t now_ns);

#endif
