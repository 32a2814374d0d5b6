/*
 * A signal handler that computes, on an alternate stack.
 *
 * "handler":	spin, on_signal, the signal frame, frames of libc, raise_signal, thread_routine,
 *		target_thread_main, start_thread, clone3
 */
#include "target.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool never;

TARGET_FRAME static void spin(void)
{
	target_arrive();
	while (!atomic_load_explicit(&never, memory_order_relaxed))
		;
	TARGET_KEEP();
}

TARGET_FRAME static void on_signal(int number)
{
	(void)number;
	spin();
	TARGET_KEEP();
}

TARGET_FRAME static void raise_signal(void)
{
	(void)raise(SIGUSR1);
	TARGET_KEEP();
}

TARGET_FRAME static void thread_routine(void *arg)
{
	stack_t stack = { .ss_size = 128 << 10 };

	(void)arg;
	stack.ss_sp = malloc(stack.ss_size);
	if (!stack.ss_sp || sigaltstack(&stack, NULL) < 0)
		target_die("sigaltstack");
	raise_signal();
	TARGET_KEEP();
}

int main(void)
{
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_ONSTACK };

	target_init();
	if (sigaction(SIGUSR1, &action, NULL) < 0)
		target_die("sigaction");
	target_start("handler", -1, thread_routine, NULL);
	target_wait();
	return 0;
}
