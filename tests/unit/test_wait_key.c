#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/wait_text.h"

static const struct ss_socket_address here = { { 10, 0, 0, 9 }, 4, 5432 };
static const struct ss_socket_address there = { { 10, 0, 0, 10 }, 4, 40000 };
/* The same two, mapped into IPv6. */
static const struct ss_socket_address mapped_here = { { [10] = 0xff, 0xff, 10, 0, 0, 9 },
						      16,
						      5432 };
static const struct ss_socket_address mapped_there = {
	{ [10] = 0xff, 0xff, 10, 0, 0, 10 }, 16, 40000
};

static struct ss_descriptor connection(const char *protocol,
				       const struct ss_socket_address *local,
				       const struct ss_socket_address *remote)
{
	return (struct ss_descriptor){ .kind = SS_FD_SOCKET,
				       .protocol = protocol,
				       .local = *local,
				       .remote = *remote };
}

/* Frees the key. */
static void expect_key(char *key, const char *expected)
{
	if (expected) {
		assert_non_null(key);
		assert_string_equal(key, expected);
	} else {
		assert_null(key);
	}
	free(key);
}

static void expect(const struct ss_descriptor *descriptor, const char *expected)
{
	expect_key(ss_wait_key_new_descriptor(descriptor, "boot"), expected);
}

TEST(test_connections)
{
	static const char key[] = "tcp:10.0.0.10:40000-10.0.0.9:5432";
	static const struct ss_socket_address unknown = {};
	static const struct ss_socket_address loopback = { { [15] = 1 }, 16, 80 };

	struct ss_descriptor one = connection("TCP", &here, &there);
	struct ss_descriptor other = connection("TCPv6", &mapped_there, &mapped_here);
	struct ss_descriptor local = connection("TCPv6", &loopback, &loopback);
	struct ss_descriptor udp = connection("UDP", &there, &here);
	struct ss_descriptor listening = connection("TCP", &here, &unknown);
	struct ss_descriptor none = connection(NULL, &here, &there);
	expect(&one, key);
	expect(&other, key);
	expect(&local, "tcp:boot/[::1]:80-[::1]:80");
	expect(&udp, "udp:10.0.0.10:40000-10.0.0.9:5432");
	expect(&listening, NULL);
	expect(&none, NULL);
	expect(NULL, NULL);
}

TEST(test_pipes)
{
	const struct ss_descriptor pipe = { .kind = SS_FD_PIPE, .name = "pipe:[7]" };
	const struct ss_descriptor fifo = { .kind = SS_FD_PIPE, .name = "/run/fifo" };
	const struct ss_descriptor file = { .kind = SS_FD_FILE, .name = "/x" };

	expect(&pipe, "pipe:boot/[7]");
	expect(&fifo, "pipe:boot//run/fifo");
	expect(&file, NULL);
}

static void expect_wait(const struct ss_wait *wait, const char *expected)
{
	expect_key(ss_wait_key_new(wait, 7, "boot"), expected);
}

TEST(test_waits)
{
	const struct ss_descriptor pipe = { .kind = SS_FD_PIPE, .name = "pipe:[7]" };
	const struct ss_descriptor file = { .kind = SS_FD_FILE, .name = "/x" };
	const struct ss_watched_fd fds[] = { { .what = &pipe }, { .what = &pipe } };
	struct ss_wait lock = { .kind = SS_WAIT_FILE_LOCK, .descriptor = &file };
	struct ss_wait poll = { .kind = SS_WAIT_POLL, .fds = fds, .fd_count = 1 };
	const struct ss_wait mutex = { .kind = SS_WAIT_MUTEX, .address = 0xabc };

	expect_wait(NULL, NULL);
	expect_wait(&mutex, "futex:boot/7/0xabc");
	expect_wait(&lock, "file:/x"); /* held by another host, perhaps */
	lock.owner_pid = 9;
	expect_wait(&lock, "file:boot/x");
	expect_wait(&poll, "pipe:boot/[7]");
	poll.fds_incomplete = true;
	expect_wait(&poll, NULL);
	poll.fds_incomplete = false;
	poll.fd_count = 2;
	expect_wait(&poll, NULL);
}
