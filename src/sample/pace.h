/*
 * When ticks are due: the CPUs are sampled, or threads are captured. The clock of a CPU fires at an interval until another one is
 * set, which interrupts the CPU: so the interval changes only from group to group of
 * ticks. At each tick it must not: then the next one would always come that long after the
 * reader ran, and on busy CPUs threads had a quarter less samples than CPU time. It varies by a quarter, at random, so that sampling does not synchronise with
 * periodic work of the target; its mean is the period. Times are passed in: nothing here
 * reads a clock.
 */
#ifndef SS_SAMPLE_PACE_H
#define SS_SAMPLE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct ss_pace {
	uint64_t period_ns;   /* not 0 */
	uint64_t base_ns;     /* CLOCK_MONOTONIC; when the interval was set */
	uint64_t interval_ns; /* the CPUs are sampled that long after, and so on */
	uint64_t counted;     /* ticks since base_ns that were counted */
	uint64_t random;
};

/* The CPUs are sampled at the period from now on. */
void ss_pace_init(struct ss_pace *pace, uint64_t period_ns, uint64_t now_ns);

/* The time of the next tick that was not counted. */
uint64_t ss_pace_next_ns(const struct ss_pace *pace);

/* A time after that at which to read what was sampled: at random within an interval, or
   within max_ns, and not at once. */
uint64_t ss_pace_reading_ns(struct ss_pace *pace, uint64_t max_ns);

/* Counts the ticks up to now. *first_ns: the time of the first one. */
uint64_t ss_pace_advance(struct ss_pace *pace, uint64_t now_ns, uint64_t *first_ns);

/* After that: whether the interval changes now. If so, interval_ns must be set. */
bool ss_pace_renew(struct ss_pace *pace, uint64_t now_ns);

/* After that: it was set by then. If a sample were read before it is there, and the interval
   set once more, it would never come. */
void ss_pace_set(struct ss_pace *pace, uint64_t now_ns);

#endif
