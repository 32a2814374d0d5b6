/*
 * The parent of a zombie: its child has exited and is not waited for. Prints "zombie PID"
 * before "ready".
 *
 * The main thread: read, target_wait, main, libc's start, _start.
 */
#include "target.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	siginfo_t info;
	pid_t child;

	target_init();
	child = fork();
	if (child < 0)
		target_die("fork");
	if (child == 0)
		_exit(0);
	if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) < 0)
		target_die("waitid");
	printf("zombie %d\n", (int)child);
	target_wait();
	return 0;
}
