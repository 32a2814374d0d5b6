/*
 * A deep recursion.
 *
 * deep [DEPTH [THREADS]]	(default: 50000, 1)
 *
 * Each thread "recursion":
 *	poll
 *	target_block
 *	sink_a, sink_b, sink_c, sink_a, ...	DEPTH frames, innermost first
 *	thread_routine
 *	target_thread_main, start_thread, clone3
 */
#include "target.h"

#include <stdint.h>
#include <sys/syscall.h>

static unsigned depth;

static void sink_a(unsigned left);
static void sink_b(unsigned left);

/* c calls b, b calls a, a calls c. */
TARGET_FRAME static void sink_c(unsigned left)
{
	if (left == 0)
		target_block();
	else
		sink_b(left - 1);
	TARGET_KEEP();
}

TARGET_FRAME static void sink_b(unsigned left)
{
	if (left == 0)
		target_block();
	else
		sink_a(left - 1);
	TARGET_KEEP();
}

TARGET_FRAME static void sink_a(unsigned left)
{
	if (left == 0)
		target_block();
	else
		sink_c(left - 1);
	TARGET_KEEP();
}

/* The innermost frame is always sink_a. */
TARGET_FRAME static void thread_routine(void *arg)
{
	static void (*const first[])(unsigned) = { sink_a, sink_b, sink_c };
	(void)arg;

	first[(depth - 1) % 3](depth - 1);
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	depth = target_number(argc, argv, 1, 50000);
	unsigned threads = target_number(argc, argv, 2, 1);

	if (depth == 0)
		depth = 1;
	target_init();
	for (unsigned i = 0; i < threads; i++)
		target_start("recursion", SYS_poll, thread_routine, NULL);
	target_wait();
	return 0;
}
