/*
 * Threads that wait with a time limit, which ends each wait: on a futex that nobody wakes, over and over.
 * They have a real-time priority if that is allowed, so that they hardly ever wait for a CPU.
 *
 * timed_waits [THREADS [MILLISECONDS]]	(default: 8 5)
 *
 * Threads "timed-I":	syscall, wait_with_limit, target_thread_main, start_thread, clone3
 * The main thread: read, target_wait, main, libc's start, _start.
 *
 * At the end of standard input prints "WAITS SWITCHES": how many waits there were, and how often the threads
 * gave up their CPU, which is once for each wait unless something stops them.
 */
#include "target.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, NS_PER_MS = 1000 * 1000 };

static unsigned limit_ms;
static unsigned word;
static atomic_bool ends;
static atomic_uint ended;
static struct {
	unsigned long waits;
	unsigned long switches;
} results[THREADS_MAX];

static unsigned long count_switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) != 0)
		target_die("getrusage");
	return (unsigned long)usage.ru_nvcsw;
}

TARGET_FRAME static void wait_with_limit(void *arg)
{
	const struct sched_param priority = { .sched_priority = 1 };
	const struct timespec limit = { .tv_nsec = (long)limit_ms * NS_PER_MS };
	const size_t index = (size_t)(uintptr_t)arg;

	(void)sched_setscheduler(0, SCHED_FIFO, &priority);
	target_arrive();
	const unsigned long before = count_switches();
	while (!atomic_load(&ends)) {
		if (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit) == 0 ||
		    errno != ETIMEDOUT)
			target_die("futex");
		results[index].waits++;
	}
	results[index].switches = count_switches() - before;
	atomic_fetch_add(&ended, 1);
	target_block();
}

int main(int argc, char **argv)
{
	unsigned threads = target_number(argc, argv, 1, 8);
	unsigned long waits = 0;
	unsigned long switches = 0;
	char name[32];

	target_init();
	limit_ms = target_number(argc, argv, 2, 5);
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	for (unsigned i = 0; i < threads; i++) {
		snprintf(name, sizeof(name), "timed-%u", i);
		target_start(name, -1, wait_with_limit, (void *)(uintptr_t)i);
	}
	target_wait();
	atomic_store(&ends, true);
	while (atomic_load(&ended) < threads)
		sched_yield();
	for (unsigned i = 0; i < threads; i++) {
		waits += results[i].waits;
		switches += results[i].switches;
	}
	printf("%lu %lu\n", waits, switches);
	return 0;
}
