/*
 * A process whose fate comes upon it while it is being looked at: as soon as a tracer
 * has attached to its thread "fate", and DELAY microseconds later.
 *
 * fates WHAT [DELAY [SLEEPERS]]	(0, 4)
 *	exit	exits with the status 17 while its threads live
 *	abort	ends by SIGABRT
 *	fault	ends by SIGSEGV, a write through NULL
 *	leave	its thread ends; the process goes on
 *	fork	forks a child that exits with 0; goes on
 *	exec	executes itself: then there is a main thread only
 *	wait	does nothing
 * Unless it has ended otherwise, it exits with the status 18 at the end of stdin; with 19
 * if a child of its own ended in another way.
 *
 * fates shoot PID TID SIGNAL DELAY
 *	sends the signal to process PID when its thread TID is attached to, and says
 *	"shot"; ends then, or at the end of stdin.
 *
 * Thread "fate":	watch, fate_routine, target_thread_main, start_thread, clone3;
 *			or what it does instead of watch
 * Thread "sleeper-I":	poll, target_block, sleeper_routine, target_thread_main,
 *			start_thread, clone3
 * The main thread:	read, target_wait, main, libc's start, _start;
 *			after exec: read, target_wait, after_exec, main, ...
 * Before "ready" comes a line "fate TID".
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

/* Whether a tracer has attached; also if the thread is gone. */
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

/* Runs until a thread is attached to and the delay has passed; false: until stdin has
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
		fprintf(stderr, "there is no fate %s\n", name);
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
