/*
 * A process that ends, forks or executes while it is traced: DELAY microseconds after a
 * tracer has attached to its thread "fate".
 *
 * fates WHAT [DELAY [SLEEPERS]]	(default: 0 4)
 *	exit	exits with status 17 while its threads run
 *	abort	dies of SIGABRT
 *	fault	dies of SIGSEGV: a write through NULL
 *	leave	thread "fate" exits; the process continues
 *	fork	forks a child that exits with 0; continues
 *	exec	executes itself: then there is only a main thread
 *	wait	does nothing
 * Otherwise it exits at the end of standard input: with status 18, or 19 if its child did
 * not exit with 0.
 *
 * fates shoot PID TID SIGNAL DELAY
 *	sends SIGNAL to process PID when a tracer has attached to its thread TID, prints
 *	"shot" and exits; or exits at the end of standard input.
 *
 * Thread "fate":	watch, fate_routine, target_thread_main, start_thread, clone3;
 *			or the function of WHAT instead of watch
 * Thread "sleeper-I":	poll, target_block, sleeper_routine, target_thread_main,
 *			start_thread, clone3
 * The main thread:	read, target_wait, main, libc's start, _start;
 *			after exec: read, target_wait, after_exec, main, ...
 * Prints "fate TID" before "ready".
 */
#include "target.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct fate {
	const char *name;
	void (*meet)(void);
};

static const struct fate *fate;
static unsigned delay_us;
static char **arguments;
static atomic_bool broken_child;

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000u +
	       (unsigned long long)ts.tv_nsec;
}

static bool stdin_has_ended(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

/* Whether a tracer has attached, or the thread has exited. */
static bool is_traced(int fd)
{
	char text[4096];
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

	if (size <= 0)
		return true;
	text[size] = '\0';
	const char *line = strstr(text, "\nTracerPid:\t");
	return line && strtol(line + 12, NULL, 10) != 0;
}

/* Runs until a tracer has attached and the delay has passed; false: until stdin has
   ended. */
TARGET_FRAME static bool watch(const char *status)
{
	int fd = open(status, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		target_die(status);
	while (!is_traced(fd))
		if (stdin_has_ended())
			return false;
	for (unsigned long long begin = now_ns(); now_ns() < begin + delay_us * 1000ull;)
		;
	close(fd);
	return true;
}

static void meet_exit(void)
{
	_exit(17);
}

static void meet_fault(void)
{
	*(volatile int *)NULL = 1;
}

static void meet_nothing(void)
{
}

static void meet_fork(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0)
		target_die("fork");
	while (waitpid(child, &status, 0) < 0)
		;
	if (status != 0)
		atomic_store(&broken_child, true);
}

static void meet_exec(void)
{
	execl("/proc/self/exe", arguments[0], "after", (char *)NULL);
	target_die("execl");
}

static const struct fate fates[] = {
	{ "exit", meet_exit },	   { "abort", abort },	  { "fault", meet_fault },
	{ "leave", meet_nothing }, { "fork", meet_fork }, { "exec", meet_exec },
	{ "wait", meet_nothing },
};

TARGET_FRAME static void fate_routine(void *arg)
{
	(void)arg;
	target_arrive();
	bool met = strcmp(fate->name, "wait") != 0 && watch("/proc/thread-self/status");
	if (met)
		fate->meet();
	if (!met || strcmp(fate->name, "leave") != 0)
		target_block();
	TARGET_KEEP();
}

TARGET_FRAME static void sleeper_routine(void *arg)
{
	(void)arg;
	target_block();
	TARGET_KEEP();
}

TARGET_FRAME static int after_exec(void)
{
	target_wait();
	TARGET_KEEP();
	return 18;
}

static int shoot(int argc, char **argv)
{
	char status[64];

	snprintf(status, sizeof(status), "/proc/%u/task/%u/status",
		 target_number(argc, argv, 2, 0), target_number(argc, argv, 3, 0));
	delay_us = target_number(argc, argv, 5, 0);
	puts("ready");
	if (!watch(status))
		return 0;
	kill((pid_t)target_number(argc, argv, 2, 0),
	     (int)target_number(argc, argv, 4, 0));
	puts("shot");
	return 0;
}

static void find_fate(const char *name)
{
	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		if (strcmp(fates[i].name, name) == 0)
			fate = &fates[i];
	if (!fate) {
		fprintf(stderr, "unknown argument \"%s\"\n", name);
		exit(99);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "wait";
	unsigned sleepers = target_number(argc, argv, 3, 4);
	char name[32];

	target_init();
	if (strcmp(what, "after") == 0)
		return after_exec();
	if (strcmp(what, "shoot") == 0)
		return shoot(argc, argv);
	find_fate(what);
	arguments = argv;
	delay_us = target_number(argc, argv, 2, 0);
	for (unsigned i = 0; i < sleepers; i++) {
		snprintf(name, sizeof(name), "sleeper-%u", i);
		target_start(name, SYS_poll, sleeper_routine, NULL);
	}
	printf("fate %d\n",
	       (int)target_tid(target_start("fate", -1, fate_routine, NULL)));
	target_wait();
	return atomic_load(&broken_child) ? 19 : 18;
}
