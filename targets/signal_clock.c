/*
 * Blocked threads, some of which have a clock: a timer sends them 1,000 signals per
 * second, and the handler notes gaps between two of its runs. These have a real-time
 * priority if that is allowed.
 *
 * signal_clock [THREADS [CLOCKS]]	(default: 100 20)
 *
 * THREADS threads, of which CLOCKS have a clock, the first and the last among them. At the
 * end of standard input it prints "gap TID BEGIN END WAITED" for each gap of LONG_NS or more:
 * from its last handler before the gap to the first one after it, in nanoseconds of
 * CLOCK_MONOTONIC, and how long the thread was runnable and waited for a CPU in between
 * (/proc/TID/schedstat).
 *
 * Threads "blocked": poll, target_block, thread_routine, target_thread_main,
 * start_thread, clone3; with a clock sometimes in the handler.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LONG_NS = 4 * 1000 * 1000, PERIOD_NS = 1000 * 1000, GAPS_MAX = 1024 };

struct clock {
	struct target_thread *thread;
	int schedstat;
	uint64_t last_ns;
	uint64_t last_waited_ns;
	unsigned count;
	struct {
		uint64_t begin_ns;
		uint64_t end_ns;
		uint64_t waited_ns;
	} gaps[GAPS_MAX];
};

static __thread struct clock *mine;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Its second number. 0: the kernel does not count. */
static uint64_t waited_ns(int schedstat)
{
	char text[64] = "";
	uint64_t waited = 0;
	const char *p = text;

	if (pread(schedstat, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	while (*p && *p != ' ')
		p++;
	while (*p == ' ')
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		waited = waited * 10 + (uint64_t)(*p - '0');
	return waited;
}

static void on_timer(int number)
{
	int saved = errno;
	uint64_t now = now_ns();
	uint64_t waited = waited_ns(mine->schedstat);

	(void)number;
	if (mine->last_ns && now - mine->last_ns >= LONG_NS && mine->count < GAPS_MAX) {
		mine->gaps[mine->count].begin_ns = mine->last_ns;
		mine->gaps[mine->count].end_ns = now;
		mine->gaps[mine->count++].waited_ns = waited - mine->last_waited_ns;
	}
	mine->last_ns = now;
	mine->last_waited_ns = waited;
	errno = saved;
}

TARGET_FRAME static void thread_routine(void *arg)
{
	const struct sched_param priority = { .sched_priority = 50 };

	mine = arg;
	if (mine) {
		mine->schedstat =
			open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
	}
	for (;;)
		target_block();
	TARGET_KEEP();
}

static void start_clock(const struct clock *clock)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGRTMIN,
				  .sigev_notify_thread_id = target_tid(clock->thread) };
	const struct timespec period = { .tv_nsec = PERIOD_NS };
	const struct itimerspec spec = { period, period };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
	    timer_settime(timer, 0, &spec, NULL) < 0)
		target_die("timer");
}

int main(int argc, char **argv)
{
	unsigned threads = target_number(argc, argv, 1, 100);
	unsigned count = target_number(argc, argv, 2, 20);
	const struct sigaction action = { .sa_handler = on_timer };
	struct clock *clocks = calloc(count, sizeof(*clocks));
	unsigned started = 0;

	target_init();
	if (!clocks || sigaction(SIGRTMIN, &action, NULL) < 0)
		target_die("sigaction");
	for (unsigned i = 0; i < threads; i++) {
		/* The first and the last thread have one. */
		bool ticks = started < count && (uint64_t)i * (count - 1) >=
							(uint64_t)started * (threads - 1);
		struct clock *clock = ticks ? &clocks[started++] : NULL;
		struct target_thread *thread =
			target_start("blocked", SYS_poll, thread_routine, clock);
		if (clock)
			clock->thread = thread;
	}
	for (unsigned i = 0; i < started; i++)
		start_clock(&clocks[i]);
	target_wait();
	for (unsigned i = 0; i < started; i++)
		for (unsigned gap = 0; gap < clocks[i].count; gap++)
			printf("gap %d %llu %llu %llu\n", target_tid(clocks[i].thread),
			       (unsigned long long)clocks[i].gaps[gap].begin_ns,
			       (unsigned long long)clocks[i].gaps[gap].end_ns,
			       (unsigned long long)clocks[i].gaps[gap].waited_ns);
	return 0;
}
