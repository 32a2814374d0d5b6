/*
 * Threads in a libc without unwind tables: the test compiles this with musl-gcc. Each thread waits
 * in a function of the libc; thread "sorted" in a callback of the libc:
 *	..., in_poll, descend, descend, descend, thread_routine, target_thread_main, ...
 *	..., in_cond, ...			the same in pthread_cond_wait
 *	..., in_poll, compare, ..., in_sort, ...	in a call of qsort
 */
#include "target.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

TARGET_FRAME static void in_poll(void)
{
	target_arrive();
	for (;;)
		poll(NULL, 0, -1);
}

TARGET_FRAME static void in_cond(void)
{
	pthread_mutex_lock(&mutex);
	target_arrive();
	for (;;)
		pthread_cond_wait(&condition, &mutex);
}

TARGET_FRAME static int compare(const void *a, const void *b)
{
	in_poll();
	TARGET_KEEP();
	return *(const int *)a - *(const int *)b;
}

TARGET_FRAME static void in_sort(void)
{
	int numbers[] = { 4, 3, 2, 1 };

	qsort(numbers, 4, sizeof(*numbers), compare);
	TARGET_KEEP();
}

TARGET_FRAME static void descend(unsigned depth, void (*wait)(void))
{
	if (depth > 1)
		descend(depth - 1, wait);
	else
		wait();
	TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	descend(3, (void (*)(void))arg);
	TARGET_KEEP();
}

int main(void)
{
	target_init();
	target_start("polls", SYS_poll, thread_routine, (void *)in_poll);
	target_start("waits", SYS_futex, thread_routine, (void *)in_cond);
	target_start("sorts", SYS_poll, thread_routine, (void *)in_sort);
	target_wait();
	return 0;
}
