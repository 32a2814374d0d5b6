/*
 * Threads that spin at a known stack depth.
 *
 * busy [THREADS [DEPTH]]	(default: 4 10)
 *
 * Threads "busy-I":	spin, DEPTH times descend, thread_routine, target_thread_main,
 *			start_thread, clone3
 */
#include "target.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_bool never;

TARGET_FRAME static void spin(void)
{
	target_arrive();
	while (!atomic_load_explicit(&never, memory_order_relaxed))
		;
	TARGET_KEEP();
}

TARGET_FRAME static void descend(unsigned left)
{
	if (left <= 1)
		spin();
	else
		descend(left - 1);
	TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	descend(*(unsigned *)arg);
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	unsigned count = target_number(argc, argv, 1, 4);
	unsigned depth = target_number(argc, argv, 2, 10);
	char name[32];

	if (depth == 0)
		depth = 1;
	target_init();
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "busy-%u", i);
		target_start(name, -1, thread_routine, &depth);
	}
	target_wait();
	return 0;
}
