/*
 * The module that forks: what a child inherits, how its end is noticed, and what is sent over
 * its channel.
 */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"

static void start(const struct ss_child_options *options, ss_child_function *function,
		  void *data, struct ss_child *ret)
{
	assert_null(ss_child_start(options, function, data, ret));
}

static int return_it(void *data, int channel)
{
	(void)channel;
	return *(const int *)data;
}

/* Until it is killed. */
static int wait_for_ever(void *data, int channel)
{
	(void)data;
	(void)channel;
	while (pause() < 0)
		;
	return 0;
}

TEST(test_status)
{
	const struct ss_child_options options = {};
	struct ss_child child = SS_NO_CHILD;
	int status = 17;

	start(&options, return_it, &status, &child);
	assert_int_equal(child.channel, -1);
	assert_true(ss_child_wait(&child, SS_CHILD_FOREVER));
	assert_int_equal(child.pid, 0);
	assert_int_equal(ss_child_exit_status(&child), 17);
	assert_true(ss_child_wait(&child, 0)); /* it was waited for */
	ss_child_signal(&child, SIGKILL);      /* nobody */
	assert_true(ss_child_end(&child));
	assert_int_equal(ss_child_exit_status(&child), 17);
}

TEST(test_end)
{
	const struct ss_child_options options = { .block_signals = true };
	struct ss_child child = SS_NO_CHILD;

	start(&options, wait_for_ever, NULL, &child);
	ss_child_signal(&child, SIGTERM); /* blocked */
	assert_false(ss_child_wait(&child, 50));
	assert_true(ss_child_end(&child));
	assert_int_equal(ss_child_exit_status(&child), 128 + SIGKILL);
}

/* The program of a library may wait for all of its children. */
TEST(test_waited_for)
{
	const struct ss_child_options options = {};
	struct ss_child child = SS_NO_CHILD;
	int status = 1;

	start(&options, return_it, &status, &child);
	assert_int_equal(waitpid(-1, NULL, 0), child.pid);
	assert_true(ss_child_end(&child));
	assert_int_equal(child.status, 0);
}

static int echo(void *data, int channel)
{
	char byte;

	(void)data;
	return read(channel, &byte, 1) == 1 && write(channel, &byte, 1) == 1 ? 0 : 1;
}

TEST(test_sockets)
{
	static const enum ss_child_channel channels[] = { SS_CHILD_STREAM,
							  SS_CHILD_PACKETS };
	char byte = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct ss_child_options options = { .channel = channels[i] };
		struct ss_child child = SS_NO_CHILD;
		start(&options, echo, NULL, &child);
		assert_int_equal(send(child.channel, "a", 1, MSG_NOSIGNAL), 1);
		assert_int_equal(read(child.channel, &byte, 1), 1);
		assert_int_equal(byte, 'a');
		assert_int_equal(read(child.channel, &byte, 1), 0);
		assert_true(ss_child_end(&child));
		assert_int_equal(child.channel, -1);
	}
}

/* Writes what cat(1) would. */
static int copy_input(void *data, int channel)
{
	char bytes[8];
	ssize_t n;

	(void)data;
	(void)channel;
	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0)
		(void)!write(STDOUT_FILENO, bytes, (size_t)n);
	return 0;
}

TEST(test_streams)
{
	struct ss_child child = SS_NO_CHILD;
	char bytes[8] = "";
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	const struct ss_child_options options = {
		.channel = SS_CHILD_READS,
		.streams = { SS_CHILD_CHANNEL, pipes[1], SS_CHILD_NOWHERE },
	};
	start(&options, copy_input, NULL, &child);
	assert_int_equal(write(child.channel, "abc", 3), 3);
	(void)close(child.channel);
	child.channel = -1;
	assert_true(ss_child_wait(&child, SS_CHILD_FOREVER));
	assert_int_equal(read(pipes[0], bytes, sizeof(bytes)), 3);
	assert_string_equal(bytes, "abc");
	(void)close(pipes[0]);
	(void)close(pipes[1]);
}

/* Sends both ends of a pipe. */
static int send_pipe(void *data, int channel)
{
	struct ss_child_files files = { .count = 2 };
	char byte[] = "p";
	struct iovec part = { byte, 1 };

	(void)data;
	return pipe(files.items) == 0 && ss_child_send(channel, &part, 1, &files) == 1 ?
		       0 :
		       1;
}

TEST(test_descriptors)
{
	const struct ss_child_options options = { .channel = SS_CHILD_STREAM };
	struct ss_child child = SS_NO_CHILD;
	struct ss_child_files files;
	char bytes[8] = "";

	start(&options, send_pipe, NULL, &child);
	assert_int_equal(ss_child_receive(child.channel, bytes, sizeof(bytes), 0, &files),
			 1);
	assert_int_equal(bytes[0], 'p');
	assert_int_equal(files.count, 2);
	assert_false(files.truncated);
	assert_int_equal(write(files.items[1], "abc", 3), 3);
	assert_int_equal(read(files.items[0], bytes, sizeof(bytes)), 3);
	assert_true(fcntl(files.items[0], F_GETFD) & FD_CLOEXEC);
	(void)close(files.items[0]);
	(void)close(files.items[1]);
	assert_true(ss_child_end(&child));
}

/* Limits are lowered only. */
static int lower_limit(void *data, int channel)
{
	struct rlimit limit;

	(void)data;
	(void)channel;
	ss_child_limit(RLIMIT_NOFILE, 30, 40);
	ss_child_limit(RLIMIT_NOFILE, 50, 50);
	return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 30 &&
			       limit.rlim_max == 40 ?
		       0 :
		       1;
}

/* Prints without a newline into a pipe: only a flush writes it. */
static int print(void *data, int channel)
{
	(void)channel;
	(void)fputs(data, stdout);
	return 0;
}

TEST(test_limit)
{
	const struct ss_child_options options = {};
	struct ss_child child = SS_NO_CHILD;

	start(&options, lower_limit, NULL, &child);
	assert_true(ss_child_wait(&child, SS_CHILD_FOREVER));
	assert_int_equal(child.status, 0);
}

TEST(test_flush)
{
	const struct ss_child_options options = {
		.channel = SS_CHILD_WRITES,
		.streams = { 0, SS_CHILD_CHANNEL },
		.flush = true,
	};
	struct ss_child child = SS_NO_CHILD;
	char text[] = "text";
	char bytes[8] = "";

	start(&options, print, text, &child);
	assert_int_equal(read(child.channel, bytes, sizeof(bytes)), 4);
	assert_string_equal(bytes, "text");
	assert_true(ss_child_end(&child));
}

/* Which descriptors below 64 are open, as bits. */
static int write_open(void *data, int channel)
{
	uint64_t open = 0;

	(void)data;
	for (int fd = 0; fd < 64; fd++)
		open |= fcntl(fd, F_GETFD) >= 0 ? UINT64_C(1) << fd : 0;
	open &= ~(UINT64_C(1) << channel);
	return write(channel, &open, sizeof(open)) == sizeof(open) ? 0 : 1;
}

TEST(test_files)
{
	const int keep[] = { -1, STDERR_FILENO, 40 };
	const struct ss_child_options options = { .channel = SS_CHILD_WRITES,
						  .close_files = true,
						  .keep = keep,
						  .keep_count = 3 };
	struct ss_child child = SS_NO_CHILD;
	uint64_t open = 0;

	assert_int_equal(dup2(STDERR_FILENO, 40), 40);
	assert_int_equal(dup2(STDERR_FILENO, 41), 41);
	start(&options, write_open, NULL, &child);
	assert_int_equal(read(child.channel, &open, sizeof(open)), sizeof(open));
	assert_true(open == (UINT64_C(1) << STDERR_FILENO | UINT64_C(1) << 40));
	assert_true(ss_child_end(&child));
	(void)close(40);
	(void)close(41);
}

/* Its child outlives it, unless that gets the signal; the channel is open until both have
   ended. */
static int leave_child(void *data, int channel)
{
	const struct ss_child_options options = { .death_signal = *(const int *)data };
	struct ss_child child = SS_NO_CHILD;

	(void)channel;
	return ss_child_start(&options, wait_for_ever, NULL, &child) != NULL;
}

TEST(test_death_signal)
{
	const struct ss_child_options options = { .channel = SS_CHILD_WRITES };
	struct ss_child child = SS_NO_CHILD;
	int death_signal = SIGTERM;
	char byte;

	start(&options, leave_child, &death_signal, &child);
	assert_int_equal(read(child.channel, &byte, 1), 0);
	assert_true(ss_child_wait(&child, SS_CHILD_FOREVER));
	assert_int_equal(ss_child_exit_status(&child), 0);
	assert_true(ss_child_end(&child));
}

static int spend_time(void *data, int channel)
{
	(void)data;
	(void)channel;
	while (clock() < CLOCKS_PER_SEC / 50)
		;
	return 0;
}

TEST(test_time)
{
	const struct ss_child_options options = {};
	struct ss_child child = SS_NO_CHILD;

	start(&options, spend_time, NULL, &child);
	assert_true(ss_child_wait(&child, SS_CHILD_FOREVER));
	assert_true(child.cpu_ns >= 1000000);
}

static int compare_cpus(void *data, int channel)
{
	cpu_set_t cpus;

	(void)channel;
	return sched_getaffinity(0, sizeof(cpus), &cpus) < 0 || !CPU_EQUAL(&cpus, data);
}

/* It starts on the CPU of its parent; both may then leave that CPU. */
TEST(test_cpus)
{
	const struct ss_child_options options = { .on_this_cpu = true };
	struct ss_child child = SS_NO_CHILD;
	cpu_set_t before;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	start(&options, compare_cpus, &before, &child);
	assert_int_equal(compare_cpus(&before, -1), 0);
	assert_true(ss_child_wait(&child, SS_CHILD_FOREVER));
	assert_int_equal(ss_child_exit_status(&child), 0);
}
