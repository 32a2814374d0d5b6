/*
 * A process that repeatedly starts a second thread and executes itself, until the end of
 * standard input; then its exit status is 5. Prints "ready" once.
 *
 * Stacks are those of any moment in the life of a program.
 */
#include "target.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

TARGET_FRAME static void thread_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	target_init();
	if (argc < 2)
		puts("ready");
	if (poll(&in, 1, 0) > 0)
		return 5;
	target_start("second", SYS_poll, thread_routine, NULL);
	execl("/proc/self/exe", argv[0], "again", (char *)NULL);
	target_die("execl");
}
