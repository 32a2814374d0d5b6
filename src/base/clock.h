/*
 * Clocks in nanoseconds.
 */
#ifndef SS_BASE_CLOCK_H
#define SS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define SS_NS_PER_SECOND UINT64_C(1000000000)
#define SS_NS_PER_MS UINT64_C(1000000)

static inline uint64_t ss_timespec_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * SS_NS_PER_SECOND + (uint64_t)time->tv_nsec;
}

/* The time of a clock of clock_gettime(2) that every kernel has. */
static inline uint64_t ss_clock_ns(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts); /* cannot fail: the clock exists */
	return ss_timespec_ns(&ts);
}

/* CLOCK_MONOTONIC: intervals and deadlines. */
static inline uint64_t ss_now_ns(void)
{
	return ss_clock_ns(CLOCK_MONOTONIC);
}

/* Sleeps this long, or until a signal handler has run. */
static inline void ss_sleep_ns(uint64_t ns)
{
	struct timespec ts = { .tv_sec = (time_t)(ns / SS_NS_PER_SECOND),
			       .tv_nsec = (long)(ns % SS_NS_PER_SECOND) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

#endif
