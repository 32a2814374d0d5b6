/*
 * Children of a test that are captured: how they are started and stopped, and the
 * capture of one. For tests with cmocka.
 */
#ifndef SS_TESTS_CAPTURE_CHILD_H
#define SS_TESTS_CAPTURE_CHILD_H

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "data/capture.h"
#include "process/target.h"

enum { EXIT_STATUS = 42, THREADS = 20 };

typedef void child_main(int ready);

static inline void say_ready(int fd)
{
	if (write(fd, "!", 1) != 1)
		_exit(1);
}

/* Forks a child that runs main; waits until it says so. */
static inline pid_t start(child_main *run)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(ends[1]);
		_exit(EXIT_STATUS);
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	return child;
}

static inline void stop(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static inline void *sleep_for_ever(void *data)
{
	for (;;)
		(void)pause();
	return data;
}

static inline void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
		_exit(1);
}

static inline void sleepers(int ready)
{
	for (int i = 1; i < THREADS; i++)
		start_thread();
	say_ready(ready);
	(void)sleep_for_ever(NULL);
}

static inline const struct ss_capture_thread *
find_thread(const struct ss_capture *capture, pid_t tid)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (capture->threads.items[i].tid == tid)
			return &capture->threads.items[i];
	}
	fail_msg("thread %d is not there", tid);
	return NULL;
}

/* The capture, or NULL with the code in *code. */
static inline struct ss_capture *take(pid_t pid, const struct ss_capture_options *options,
				      enum ss_error_code *code)
{
	_cleanup_(ss_target_cleanup) struct ss_target *target = NULL;
	struct ss_capture *capture = NULL;
	_cleanup_error_ struct ss_error *error = ss_target_open(pid, &target);

	if (!error)
		error = ss_capture_take(target, options, &capture);
	if (error) {
		assert_null(capture);
		*code = ss_error_code(error);
		return NULL;
	}
	assert_non_null(capture);
	return capture;
}

static inline size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

#endif
