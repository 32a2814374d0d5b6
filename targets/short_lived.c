/*
 * A process that ends by itself while it is looked at: it says "ready", starts and ends
 * threads, and exits with the status 7 after THREADS of them. The last ones are still
 * there when it exits.
 *
 * short_lived [THREADS]	(100)
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
