/*
 * ring THREADS: threads that pass a token. Each waits for it, sleeps briefly in hold() and
 * passes it on, so that at most one thread is in hold() at any time. A snapshot with two
 * threads in hold() is not atomic. While the token is passed, none is in hold().
 *
 * Thread ring-N: the libc's frames of the call, hold or await, thread_routine,
 * target_thread_main, start_thread, clone3.
 */
#include "target.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 256, HOLD_NS = 100 * 1000 };

static int tokens[THREADS_MAX];
static unsigned count;

TARGET_FRAME static void await(unsigned index)
{
	uint64_t value;

	if (read(tokens[index], &value, sizeof(value)) < 0)
		target_die("read");
	TARGET_KEEP();
}

TARGET_FRAME static void hold(void)
{
	struct timespec hold = { .tv_nsec = HOLD_NS };

	nanosleep(&hold, NULL);
	TARGET_KEEP();
}

TARGET_FRAME static void pass(unsigned index)
{
	uint64_t value = 1;

	if (write(tokens[(index + 1) % count], &value, sizeof(value)) < 0)
		target_die("write");
	TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	unsigned index = (unsigned)(uintptr_t)arg;

	target_arrive();
	for (;;) {
		await(index);
		hold();
		pass(index);
	}
}

int main(int argc, char **argv)
{
	target_init();
	count = target_number(argc, argv, 1, 10);
	if (count < 2 || count > THREADS_MAX)
		target_die("threads");
	for (unsigned i = 0; i < count; i++) {
		char name[16];
		tokens[i] = eventfd(0, 0);
		if (tokens[i] < 0)
			target_die("eventfd");
		snprintf(name, sizeof(name), "ring-%u", i);
		(void)target_begin(name, -1, thread_routine, (void *)(uintptr_t)i);
	}
	pass(count - 1);
	target_wait();
	return 0;
}
