/*
 * Threads that compute in short bursts and sleep in between. Of the time that a burst
 * takes in user space, the share of each of its two functions is known: both run the same
 * loop, for 3 and for 7 of 10 of the rounds.
 *
 * bursts [BURST_US [SLEEP_US [THREADS]]]	(default: 100 100 1)
 *
 * A burst is about BURST_US long. At the end of standard input the program prints, for all
 * threads together, the time on a CPU and how much of it the rounds took, in nanoseconds
 * of the scheduler's clock: "cpu NS rounds NS".
 *
 * Threads "burst-I":	[ppoll or few_rounds or many_rounds,] burst, thread_routine,
 *			target_thread_main, start_thread, clone3
 */
#include "target.h"

#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PARTS = 10, FEW = 3, CALIBRATE = 1 << 16, TRIES = 200 };

static atomic_bool end;
static struct timespec sleep_time;
static unsigned rounds; /* of a burst */
static _Atomic uint64_t cpu_ns, rounds_ns;
static atomic_uint finished;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#define LOOP(count)                                                                      \
	for (unsigned left = (count); left > 0; left--)                                  \
	__asm__ volatile("" ::: "memory")

TARGET_FRAME static void few_rounds(void)
{
	LOOP(rounds / PARTS * FEW);
}

TARGET_FRAME static void many_rounds(void)
{
	LOOP(rounds / PARTS * (PARTS - FEW));
}

/* Returns how long the rounds took. */
TARGET_FRAME static uint64_t burst(void)
{
	uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);

	few_rounds();
	many_rounds();
	uint64_t time = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	ppoll(NULL, 0, &sleep_time, NULL);
	TARGET_KEEP();
	return time;
}

TARGET_FRAME static void thread_routine(void *arg)
{
	uint64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t done = 0;

	(void)arg;
	target_arrive();
	while (!atomic_load_explicit(&end, memory_order_relaxed))
		done += burst();
	atomic_fetch_add(&rounds_ns, done);
	atomic_fetch_add(&cpu_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	atomic_fetch_add(&finished, 1);
	TARGET_KEEP();
}

/* How long a round takes: the least of several tries, as other programs run, too. */
static double measure_round(void)
{
	uint64_t least = UINT64_MAX;

	rounds = CALIBRATE;
	for (int i = 0; i < TRIES; i++) {
		uint64_t begin = now_ns(CLOCK_MONOTONIC);
		few_rounds();
		uint64_t time = now_ns(CLOCK_MONOTONIC) - begin;
		least = time < least ? time : least;
	}
	return (double)least / (CALIBRATE / PARTS * FEW);
}

int main(int argc, char **argv)
{
	unsigned burst_us = target_number(argc, argv, 1, 100);
	unsigned sleep_us = target_number(argc, argv, 2, 100);
	unsigned count = target_number(argc, argv, 3, 1);
	char name[32];

	target_init();
	rounds = (unsigned)(burst_us * 1000 / measure_round());
	sleep_time = (struct timespec){ .tv_sec = sleep_us / 1000000,
					.tv_nsec = sleep_us % 1000000 * 1000L };
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "burst-%u", i);
		target_start(name, -1, thread_routine, NULL);
	}
	target_wait();
	end = true;
	while (finished < count)
		sched_yield();
	printf("cpu %llu rounds %llu\n", (unsigned long long)cpu_ns,
	       (unsigned long long)rounds_ns);
	return 0;
}
