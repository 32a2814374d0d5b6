/*
 * Counts the SIGRTMIN signals that it receives, which the kernel queues, so that none may
 * be lost. At the end of standard input it prints "signals COUNT" and exits with status 42.
 *
 * Thread "sleeper":	poll, target_block, thread_routine, target_thread_main,
 *			start_thread, clone3
 * The main thread: read, target_wait, main, libc's start, _start.
 */
#include "target.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>

static atomic_ulong signals;

static void count(int number)
{
	(void)number;
	atomic_fetch_add(&signals, 1);
}

TARGET_FRAME static void thread_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

int main(void)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };

	target_init();
	if (sigaction(SIGRTMIN, &action, NULL) < 0)
		target_die("sigaction");
	target_start("sleeper", SYS_poll, thread_routine, NULL);
	target_wait();
	printf("signals %lu\n", atomic_load(&signals));
	return 42;
}
