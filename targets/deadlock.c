/*
 * Threads that deadlock in a cycle, and others that wait for one of them.
 *
 * deadlock KIND [THREADS [BEHIND]]	(default: 2 1)
 *
 * KIND is normal, errorcheck, recursive, adaptive, pi, robust, shared, c11 or timed (normal
 * mutexes, which are waited for a week at most). Thread
 * locker-I holds mutexes[I] and waits for mutexes[I + 1], the last one for mutexes[0]:
 *	the libc's frames of the call	..., pthread_mutex_lock (c11: and mtx_lock)
 *	take
 *	take_next
 *	hold_and_wait
 *	target_thread_main, start_thread, clone3
 * Thread behind-I waits for mutexes[0] and holds nothing:
 *	the libc's frames, take, wait_behind, target_thread_main, ...
 * KIND globals has two threads and no behind-I. Locks are global variables: locker-0 holds
 * first and waits for second in first_then_second; locker-1 holds second and waits for
 * first in second_then_first. The frames take, take_next and hold_and_wait are missing.
 * With THREADS 1 the thread waits for itself. Mutexes of kind errorcheck and recursive do
 * not block then, and the thread waits in poll, target_block instead.
 */
#include "target.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>

enum { MOST = 16 };

pthread_mutex_t mutexes[MOST];
mtx_t c11_mutexes[MOST];

static pthread_barrier_t all_hold;
static bool c11;
static bool timed;
static unsigned count;

TARGET_FRAME static int take(unsigned number)
{
	struct timespec limit;
	int error;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += 7 * 24 * 3600;
	if (timed)
		error = pthread_mutex_timedlock(&mutexes[number], &limit);
	else
		error = c11 ? mtx_lock(&c11_mutexes[number]) :
			      pthread_mutex_lock(&mutexes[number]);
	TARGET_KEEP();
	return error;
}

TARGET_FRAME static void take_next(unsigned number)
{
	if (take((number + 1) % count) == EDEADLK)
		puts("EDEADLK");
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void hold_and_wait(void *arg)
{
	unsigned number = *(unsigned *)arg;

	if (take(number) != 0)
		target_die("take");
	pthread_barrier_wait(&all_hold);
	target_arrive();
	take_next(number);
	TARGET_KEEP();
}

TARGET_FRAME static void wait_behind(void *arg)
{
	(void)arg;
	target_arrive();
	take(0);
	target_block();
	TARGET_KEEP();
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;

TARGET_FRAME static void first_then_second(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&first);
	if (count) { /* never true; lets the compiler assume a return */
		pthread_mutex_unlock(&first);
		return;
	}
	pthread_barrier_wait(&all_hold);
	target_arrive();
	pthread_mutex_lock(&second);
	TARGET_KEEP();
}

TARGET_FRAME static void second_then_first(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&all_hold);
	target_arrive();
	pthread_mutex_lock(&first);
	TARGET_KEEP();
}

static int run_globals(void)
{
	struct target_thread *threads[2];

	pthread_barrier_init(&all_hold, NULL, 2);
	threads[0] = target_begin("locker-0", SYS_futex, first_then_second, NULL);
	threads[1] = target_begin("locker-1", SYS_futex, second_then_first, NULL);
	for (size_t i = 0; i < 2; i++)
		target_await(threads[i]);
	target_wait();
	return 0;
}

static void init_mutex(const char *kind, unsigned number)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (strcmp(kind, "errorcheck") == 0)
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	else if (strcmp(kind, "recursive") == 0)
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
	else if (strcmp(kind, "adaptive") == 0)
		pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	else if (strcmp(kind, "pi") == 0)
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	else if (strcmp(kind, "robust") == 0)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	else if (strcmp(kind, "shared") == 0)
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&mutexes[number], &attr);
	pthread_mutexattr_destroy(&attr);
	mtx_init(&c11_mutexes[number], mtx_plain);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "normal";
	unsigned behind = target_number(argc, argv, 3, 1);
	static unsigned numbers[MOST];
	struct target_thread *threads[MOST];
	bool refused = false;
	char name[32];

	target_init();
	if (strcmp(kind, "globals") == 0)
		return run_globals();
	count = target_number(argc, argv, 2, 2);
	if (count > MOST)
		return 64;
	c11 = strcmp(kind, "c11") == 0;
	timed = strcmp(kind, "timed") == 0;
	refused = count == 1 &&
		  (strcmp(kind, "errorcheck") == 0 || strcmp(kind, "recursive") == 0);
	for (unsigned i = 0; i < count; i++)
		init_mutex(kind, i);
	pthread_barrier_init(&all_hold, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		numbers[i] = i;
		snprintf(name, sizeof(name), "locker-%u", i);
		threads[i] = target_begin(name, refused ? SYS_poll : SYS_futex,
					  hold_and_wait, &numbers[i]);
	}
	for (unsigned i = 0; i < count; i++)
		target_await(threads[i]);
	for (unsigned i = 0; i < behind; i++) {
		snprintf(name, sizeof(name), "behind-%u", i);
		target_start(name, SYS_futex, wait_behind, NULL);
	}
	target_wait();
	return 0;
}
