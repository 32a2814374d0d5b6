/*
 * A timer that sends a signal 1,000 times per second while a thread computes. At the end
 * of standard input it prints "signals COUNT EXPIRED": how often the handler ran and how
 * often the timer expired (each expiration is a signal or an overrun).
 *
 * Thread "computes":	spin, compute, target_thread_main, start_thread, clone3
 * The main thread: read, target_wait, main, libc's start, _start; or in the handler.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "target.h"

static atomic_ulong handled;
static atomic_ulong expired;
static atomic_bool finished;
static atomic_bool ended;

static void on_timer(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	atomic_fetch_add(&handled, 1);
	atomic_fetch_add(&expired, 1 + (unsigned long)info->si_overrun);
}

TARGET_FRAME static void spin(void)
{
	for (volatile int i = 0; i < 1000; i++)
		;
}

TARGET_FRAME static void compute(void *arg)
{
	(void)arg;
	target_arrive();
	while (!atomic_load(&finished))
		spin();
	atomic_store(&ended, true);
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = on_timer,
				    .sa_flags = SA_RESTART | SA_SIGINFO };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec spec = { .it_value.tv_nsec = 1000000,
				   .it_interval.tv_nsec = 1000000 };
	timer_t timer;

	target_init();
	if (sigaction(SIGRTMIN, &action, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) < 0 ||
	    timer_settime(timer, 0, &spec, NULL) < 0)
		target_die("timer");
	target_start("computes", -1, compute, NULL);
	target_wait();
	timer_delete(timer);
	atomic_store(&finished, true);
	while (!atomic_load(&ended))
		;
	printf("signals %lu %lu\n", atomic_load(&handled), atomic_load(&expired));
	return 0;
}
