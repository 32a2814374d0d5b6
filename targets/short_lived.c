/*
 * A process that exits on its own: it prints "ready", starts and ends THREADS threads
 * and exits with status 7. The last threads are still running when it exits.
 *
 * short_lived [THREADS]	(default: 100)
 */
#include "target.h"

#include <pthread.h>
#include <stdio.h>

TARGET_FRAME static void *short_thread(void *arg)
{
	return arg;
}

int main(int argc, char **argv)
{
	unsigned count = target_number(argc, argv, 1, 100);
	pthread_attr_t attr;
	pthread_t thread;

	target_init();
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	puts("ready");
	for (unsigned i = 0; i < count; i++)
		pthread_create(&thread, &attr, short_thread, NULL);
	return 7;
}
