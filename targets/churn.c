/*
 * Creates and joins thousands of threads per second.
 *
 * churn [MAKERS]	(default: 2)
 *
 * Threads "maker-I" create and join threads that exit at once and inherit the name of
 * their maker. Prints "maker-I TID" for each maker before "ready", and "made COUNT" at the
 * end of standard input; the exit status is 0.
 * The main thread: read, target_wait, main, libc's start, _start.
 */
#include "target.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool finished;
static atomic_ulong made;
static atomic_uint makers_left;

TARGET_FRAME static void *short_thread(void *arg)
{
	return arg;
}

TARGET_FRAME static void make(void *arg)
{
	pthread_t threads[4];

	(void)arg;
	target_arrive();
	while (!atomic_load(&finished)) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&threads[i], NULL, short_thread, NULL))
				target_die("pthread_create");
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
		atomic_fetch_add(&made, 4);
	}
	atomic_fetch_sub(&makers_left, 1);
}

int main(int argc, char **argv)
{
	unsigned makers = target_number(argc, argv, 1, 2);
	char name[32];

	target_init();
	atomic_store(&makers_left, makers);
	for (unsigned i = 0; i < makers; i++) {
		snprintf(name, sizeof(name), "maker-%u", i);
		printf("%s %d\n", name,
		       (int)target_tid(target_start(name, -1, make, NULL)));
	}
	target_wait();
	atomic_store(&finished, true);
	while (atomic_load(&makers_left))
		sched_yield();
	printf("made %lu\n", atomic_load(&made));
	return 0;
}
