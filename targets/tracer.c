/*
 * A process that uses ptrace itself, as a debugger does: its main thread follows a child
 * process from system call to system call.
 *
 * The main thread: wait4 or ptrace, trace, main, libc's start, _start.
 * Prints "child PID" before "ready". At the end of stdin it prints "unexpected NUMBER STOPS":
 * results of waitpid(2) and ptrace(2) that are not those of the next system call.
 */
#include "target.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_over(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

static void make_calls(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	for (;;)
		syscall(SYS_getppid);
}

TARGET_FRAME static void trace(pid_t child)
{
	unsigned long unexpected = 0;
	unsigned long stops = 0;
	int status = 0;

	for (; !is_over(); stops++) {
		if (ptrace(PTRACE_SYSCALL, child, 0, 0) < 0 ||
		    waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status) ||
		    WSTOPSIG(status) != (SIGTRAP | 0x80))
			unexpected++;
		if (unexpected > 100)
			break;
	}
	printf("unexpected %lu %lu\n", unexpected, stops);
}

int main(void)
{
	target_init();
	pid_t child = fork();
	if (child < 0)
		target_die("fork");
	if (child == 0)
		make_calls();
	if (ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACESYSGOOD) < 0 ||
	    ptrace(PTRACE_INTERRUPT, child, 0, 0) < 0 ||
	    waitpid(child, NULL, __WALL) != child)
		target_die("ptrace");
	printf("child %d\nready\n", (int)child);
	trace(child);
	kill(child, SIGKILL);
	return 0;
}
