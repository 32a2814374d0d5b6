/*
 * The watchdog ends a program that is blocked, and one that gets no CPU goes on for a while; how
 * long is tried only if STACKSNAP_TRIES is set.
 * ctest: slow tries=1
 */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/process.h"

/* The limit, after which it is looked for a second whether the program waits for a CPU. */
enum { TIMEOUT_MS = 1, LIMIT_MS = 5006, ENOUGH_MS = 6500, DONE = 42 };
/* The limit of a program that waits for a CPU, and how long one would go on. */
enum { LAST_LIMIT_MS = 4 * LIMIT_MS, TOO_LONG_MS = 2 * LAST_LIMIT_MS };

static void pin_to_first_cpu(void)
{
	cpu_set_t cpus;
	cpu_set_t first;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	CPU_ZERO(&first);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; i++) {
		if (CPU_ISSET(i, &cpus))
			CPU_SET(i, &first);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(first), &first), 0);
}

/* A child that is watched, and waits for a CPU most of the time; after duration_ms it is done. */
static pid_t start_slow(uint64_t duration_ms)
{
	const struct sched_param none = {};
	pid_t pid = fork();

	if (pid)
		return pid;
	uint64_t begin = ss_now_ns();
	ss_watchdog_begin(getpid(), TIMEOUT_MS);
	pin_to_first_cpu();
	if (sched_setscheduler(0, SCHED_IDLE, &none))
		_exit(1);
	while ((ss_now_ns() - begin) / 1000000 < duration_ms)
		;
	_exit(DONE);
}

/* A child that is watched, and blocked. */
static pid_t start_blocked(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	ss_watchdog_begin(getpid(), TIMEOUT_MS);
	for (;;)
		(void)pause();
}

/* A child that takes a CPU. */
static pid_t start_busy(void)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid)
		return pid;
	pin_to_first_cpu();
	(void)setpriority(PRIO_PROCESS, 0, -20); /* or as it is */
	while (getppid() == parent)
		;
	_exit(0);
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(test_watchdog)
{
	uint64_t begin = ss_now_ns();
	pid_t busy = start_busy();
	pid_t slow = start_slow(ENOUGH_MS);
	pid_t blocked = start_blocked();

	int ended = status_of(blocked);
	uint64_t blocked_ns = ss_now_ns() - begin;
	(void)kill(busy, SIGKILL);
	(void)waitpid(busy, NULL, 0);
	/* It has slept through its time, and ends as soon as it gets a CPU. */
	(void)sched_setscheduler(slow, SCHED_OTHER, &(const struct sched_param){});
	int done = status_of(slow);
	assert_int_equal(ended, SS_STATUS_NOTHING);
	assert_true(blocked_ns / 1000000 >= LIMIT_MS);
	assert_int_equal(done, DONE);
}

/* One that never gets a CPU is ended, too. */
TEST(test_last_limit)
{
	if (!getenv("STACKSNAP_TRIES"))
		skip();
	uint64_t begin = ss_now_ns();
	pid_t busy = start_busy();
	pid_t slow = start_slow(TOO_LONG_MS);
	int ended = status_of(slow);
	uint64_t ns = ss_now_ns() - begin;

	(void)kill(busy, SIGKILL);
	(void)waitpid(busy, NULL, 0);
	assert_int_equal(ended, SS_STATUS_NOTHING);
	assert_true(ns / 1000000 >= LAST_LIMIT_MS);
}
