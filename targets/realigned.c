/*
 * Functions that align their stack beyond the ABI and have variable-length arrays: their
 * CFI uses expressions.
 *
 * Thread "aligned":	poll, target_block, align, align, align, thread_routine,
 *			target_thread_main, start_thread, clone3
 */
#include "target.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

static void *volatile sink;

TARGET_FRAME static void align(unsigned depth)
{
	char aligned[64] __attribute__((aligned(64)));
	char *room = __builtin_alloca(depth * 100 + 1);

	memset(aligned, 0, sizeof(aligned));
	sink = aligned;
	sink = room;
	if (depth > 1)
		align(depth - 1);
	else
		target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	align((unsigned)(uintptr_t)arg);
	TARGET_KEEP();
}

int main(void)
{
	target_init();
	target_start("aligned", SYS_poll, thread_routine, (void *)3);
	target_wait();
	return 0;
}
