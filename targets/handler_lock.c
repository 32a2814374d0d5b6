/*
 * A signal handler that needs a lock which the interrupted thread holds.
 *
 * handler_lock
 *
 * Thread victim allocates memory all the time. Signals interrupt it, and their handler
 * allocates as well, until one comes while the thread holds the lock of its arena:
 *	the libc's frames of malloc
 *	allocate_in_handler
 *	<signal handler called>
 *	the libc's frames of malloc, among them one that holds the lock
 *	allocate_forever, target_thread_main, start_thread, clone3
 * Then it prints "ready".
 */
#include "target.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>

static void *volatile kept;

TARGET_FRAME static void allocate_in_handler(int number)
{
	(void)number;
	kept = malloc(3000);
}

/* Frees with the signal blocked, so that it interrupts malloc. */
static void free_all(void *volatile *blocks, size_t count)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	for (size_t i = 0; i < count; i++)
		free(blocks[i]);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

TARGET_FRAME static void allocate_forever(void *arg)
{
	void *volatile blocks[64];

	(void)arg;
	target_arrive();
	for (size_t size = 2000;; size = size * 5 / 4 % 60000 + 2000) {
		for (size_t i = 0; i < 64; i++)
			blocks[i] = malloc(size + i * 700);
		free_all(blocks, 64);
	}
}

int main(void)
{
	struct target_thread *victim;

	target_init();
	signal(SIGUSR1, allocate_in_handler);
	victim = target_begin("victim", SYS_futex, allocate_forever, NULL);
	/* It sleeps in futex for good once it waits for its own lock. */
	for (int asleep = 0; asleep < 1000; sched_yield()) {
		asleep = target_sleeps(victim) ? asleep + 1 : 0;
		if (asleep == 0 && target_tid(victim) > 0)
			target_signal(victim, SIGUSR1);
	}
	target_wait();
	return 0;
}
