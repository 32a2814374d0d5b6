/*
 * Programs that get rights when they are executed. A tracer without CAP_SYS_PTRACE at that
 * moment takes them away (execve(2)). PROGRAM is a set-user-ID copy of this program, of
 * another user than the one who starts it.
 *
 * set_uid children PROGRAM	forks children, one after the other, that execute PROGRAM
 * set_uid itself PROGRAM	executes PROGRAM, which gives up its rights and executes this
 *				program again, and so on; a tracer may attach in between
 *
 * At the end of standard input it prints "lost NUMBER EXECUTIONS": how often PROGRAM had no
 * rights, of how many executions.
 */
#include "target.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMPUTE = 200 * 1000 };

static bool has_rights(void)
{
	return geteuid() != getuid();
}

static bool is_over(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

TARGET_FRAME static void compute(void)
{
	for (volatile int i = 0; i < COMPUTE; i++)
		;
}

static void execute_children(const char *program)
{
	unsigned long executions = 0;
	unsigned long lost = 0;
	int status = 0;

	puts("ready");
	for (; !is_over(); executions++) {
		pid_t child = fork();
		if (child < 0)
			target_die("fork");
		if (child == 0) {
			compute();
			execl(program, program, "check", (char *)NULL);
			_exit(2);
		}
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		    WEXITSTATUS(status) == 2)
			target_die("a child");
		lost += WEXITSTATUS(status) != 0;
	}
	printf("lost %lu %lu\n", lost, executions);
}

static void execute(const char *path, const char *what, const char *other,
		    unsigned long lost, unsigned long executions)
{
	char numbers[2][32];

	snprintf(numbers[0], sizeof(numbers[0]), "%lu", lost);
	snprintf(numbers[1], sizeof(numbers[1]), "%lu", executions);
	execl(path, path, what, other, numbers[0], numbers[1], (char *)NULL);
	target_die(path);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long lost = argc > 4 ? strtoul(argv[3], NULL, 10) : 0;
	unsigned long executions = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;

	if (strcmp(what, "check") == 0)
		return !has_rights();
	if (argc < 3)
		return 64;
	if (strcmp(what, "return") == 0) {
		lost += !has_rights();
		if (setresuid(getuid(), getuid(), getuid()) < 0 ||
		    setresgid(getgid(), getgid(), getgid()) < 0)
			target_die("setresuid");
		execute(argv[2], "itself", argv[0], lost, executions + 1);
	}
	target_init();
	if (strcmp(what, "children") == 0) {
		execute_children(argv[2]);
		return 0;
	}
	if (executions == 0)
		puts("ready");
	if (is_over()) {
		printf("lost %lu %lu\n", lost, executions);
		return 0;
	}
	compute();
	execute(argv[2], "return", argv[0], lost, executions);
}
