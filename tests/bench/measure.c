/*
 * Runs a command and prints its cost.
 *
 * measure SECONDS FILE COMMAND [ARGUMENT...]
 *
 * The command's stdout goes to FILE; it is killed after SECONDS. Prints JSON:
 * status (the exit status, or minus the signal), timed_out, start_ns and end_ns
 * (CLOCK_MONOTONIC), cpu_ns (user and system), max_rss_kb.
 *
 * This is not done in Python because ru_maxrss of a child includes the memory of the process
 * that called exec: a child of Python never shows less than Python.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct cost {
	int status;
	bool timed_out;
	uint64_t start_ns;
	uint64_t end_ns;
	struct rusage usage;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void on_alarm(int number)
{
	(void)number; /* only interrupts wait4() */
}

static void become(const char *output, char **command)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* cannot fail with a valid signal */
	if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
		perror(output);
		_exit(126);
	}
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void await(pid_t pid, struct cost *cost)
{
	int status = 0;

	while (wait4(pid, &status, 0, &cost->usage) < 0 && errno == EINTR) {
		cost->timed_out = true;
		(void)kill(pid, SIGKILL); /* not reaped yet: the pid is still its own */
	}
	cost->end_ns = now_ns();
	cost->status = exit_status(status);
}

static uint64_t cpu_ns(const struct rusage *usage)
{
	return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000;
}

static void print(const struct cost *cost)
{
	printf("{\"status\": %d, \"timed_out\": %s, \"start_ns\": %llu, "
	       "\"end_ns\": %llu, \"cpu_ns\": %llu, \"max_rss_kb\": %ld}\n",
	       cost->status, cost->timed_out ? "true" : "false",
	       (unsigned long long)cost->start_ns, (unsigned long long)cost->end_ns,
	       (unsigned long long)cpu_ns(&cost->usage), cost->usage.ru_maxrss);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct cost cost = { 0 };
	unsigned seconds;

	if (argc < 4) {
		fprintf(stderr, "usage: %s SECONDS FILE COMMAND [ARGUMENT...]\n",
			argv[0]);
		return 64;
	}
	seconds = (unsigned)strtoul(argv[1], NULL, 10);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* cannot fail with a valid signal */
	sigaction(SIGALRM, &action, NULL);
	cost.start_ns = now_ns();
	pid_t pid = fork();
	if (pid < 0) {
		perror("fork");
		return 2;
	}
	if (pid == 0)
		become(argv[2], argv + 3);
	alarm(seconds);
	await(pid, &cost);
	print(&cost);
	return 0;
}
