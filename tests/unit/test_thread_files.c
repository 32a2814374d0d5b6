#include "unit.h"

#include <stdio.h>
#include <string.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/target.h"

/* A thread that waits for a byte of a pipe. */
struct waiter {
	pthread_t thread;
	int wake[2];
	int ready[2];
	pid_t tid;
};

static void *wait_for_byte(void *data)
{
	struct waiter *waiter = data;
	char byte = 'r';

	waiter->tid = (pid_t)syscall(SYS_gettid);
	assert_int_equal(write(waiter->ready[1], &byte, 1), 1);
	assert_int_equal(read(waiter->wake[0], &byte, 1), 1);
	return NULL;
}

static void start(struct waiter *waiter)
{
	char byte;

	assert_int_equal(pipe(waiter->wake), 0);
	assert_int_equal(pipe(waiter->ready), 0);
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_byte, waiter), 0);
	assert_int_equal(read(waiter->ready[0], &byte, 1), 1);
}

static void end(struct waiter *waiter)
{
	assert_int_equal(write(waiter->wake[1], "e", 1), 1);
	assert_int_equal(pthread_join(waiter->thread, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(close(waiter->wake[i]), 0);
		assert_int_equal(close(waiter->ready[i]), 0);
	}
}

static int open_file(pid_t tid, const char *name)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd + 1;
}

static struct ss_kept_thread open_files(pid_t tid)
{
	return (struct ss_kept_thread){ .tid = tid,
					.stat = open_file(tid, "stat"),
					.schedstat = open_file(tid, "schedstat") };
}

static bool is_open(int file)
{
	return fcntl(file - 1, F_GETFD) >= 0;
}

/* The files of a thread that has ended cannot be read, whoever has its id now. */
TEST(test_ended)
{
	struct waiter waiter = {};
	struct ss_stat stat;

	start(&waiter);
	struct ss_kept_thread files = open_files(waiter.tid);
	assert_true(ss_kept_thread_read_stat(&files, &stat));
	assert_int_equal(stat.pid, waiter.tid);
	assert_true(ss_kept_thread_count_runs(&files) > 0);
	end(&waiter);
	while (ss_kept_thread_read_stat(&files, &stat)) /* it is about to end */
		(void)sched_yield();
	assert_int_equal(ss_kept_thread_count_runs(&files), 0);
	ss_kept_thread_close(&files);
	assert_int_equal(files.stat, 0);
	assert_int_equal(files.schedstat, 0);
}

TEST(test_moved)
{
	struct ss_kept_files *kept = ss_kept_files_new();
	pid_t tid = (pid_t)syscall(SYS_gettid);
	struct waiter waiter = {};

	assert_non_null(kept);
	start(&waiter);
	/* in any order */
	struct ss_kept_thread files[] = { open_files(waiter.tid), open_files(tid) };
	ss_kept_files_replace(kept, files, 2);
	assert_true(ss_kept_files_count_runs(kept, tid) > 0);
	assert_true(ss_kept_files_count_runs(kept, waiter.tid) > 0);
	assert_int_equal(ss_kept_files_count_runs(kept, 1), 0);
	assert_int_equal(ss_kept_files_count_runs(NULL, tid), 0);

	struct ss_kept_thread taken = { .tid = tid };
	ss_kept_files_take(kept, &taken);
	assert_int_equal(taken.stat, files[1].stat);
	assert_int_equal(ss_kept_files_count_runs(kept, tid), 0);
	struct ss_kept_thread other = { .tid = 1 };
	ss_kept_files_take(kept, &other);
	assert_int_equal(other.stat, 0);
	ss_kept_files_take(NULL, &other);

	/* what was not taken is closed */
	int left = files[0].stat;
	ss_kept_files_replace(kept, &taken, 1);
	assert_false(is_open(left));
	assert_true(is_open(taken.stat));
	ss_kept_files_free(kept);
	assert_false(is_open(taken.stat));
	end(&waiter);
}
