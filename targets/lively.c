/*
 * Threads that wake up all the time: each sleeps for some hundred microseconds, computes
 * for a moment, and sleeps again.
 *
 * lively [THREADS [MICROSECONDS [LOOPS]]]	(default: 32 500 2000)
 *
 * Threads "lively-I":	clock_nanosleep, or compute, live, target_thread_main, start_thread,
 *			clone3
 * The main thread: read, target_wait, main, libc's start, _start.
 */
#include "target.h"

#include <stdio.h>
#include <time.h>

enum { NS_PER_US = 1000 };

static unsigned sleep_us;
static unsigned loops;

TARGET_FRAME static void compute(void)
{
	for (volatile unsigned i = 0; i < loops; i++)
		;
}

TARGET_FRAME static void live(void *arg)
{
	const struct timespec pause = { .tv_nsec = (long)sleep_us * NS_PER_US };

	(void)arg;
	target_arrive();
	for (;;) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		compute();
	}
}

int main(int argc, char **argv)
{
	unsigned threads = target_number(argc, argv, 1, 32);
	char name[32];

	target_init();
	sleep_us = target_number(argc, argv, 2, 500);
	loops = target_number(argc, argv, 3, 2000);
	for (unsigned i = 0; i < threads; i++) {
		snprintf(name, sizeof(name), "lively-%u", i);
		target_start(name, -1, live, NULL);
	}
	target_wait();
	return 0;
}
