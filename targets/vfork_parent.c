/*
 * A thread in uninterruptible sleep (state D), which cannot be stopped: the parent of a
 * vfork whose child sleeps.
 *
 * vfork_parent [OTHERS]	(default: 3)
 *
 * Thread "vforker":	state D; vfork, run_vfork, target_thread_main, start_thread,
 *			clone3 (the child runs on its stack, so that a tool may see less)
 * Threads "other-I":	poll, target_block, other_routine, target_thread_main,
 *			start_thread, clone3
 * Prints "vforker TID" before "ready".
 */
#include "target.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

TARGET_FRAME static void run_vfork(void *arg)
{
	(void)arg;
	target_arrive();
	pid_t child = vfork();

	if (child == 0) {
		/* the child must neither outlive this process nor keep its pipes open */
		syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
		syscall(SYS_close_range, 0, ~0U, 0);
		for (;;)
			syscall(SYS_pause);
	}
	TARGET_KEEP();
}

TARGET_FRAME static void other_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	unsigned others = target_number(argc, argv, 1, 3);
	char name[32];

	target_init();
	for (unsigned i = 0; i < others; i++) {
		snprintf(name, sizeof(name), "other-%u", i);
		target_start(name, SYS_poll, other_routine, NULL);
	}
	printf("vforker %d\n",
	       (int)target_tid(target_start("vforker", SYS_vfork, run_vfork, NULL)));
	target_wait();
	return 0;
}
