/* Which calls a program could see the stop of its thread in. */

#include "unit.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/tasks.h"

static const struct ss_target nowhere = { .arch = &ss_arch_host };

static struct ss_syscall_text make(long number, uint64_t a, uint64_t b, uint64_t c,
				   uint64_t d, uint64_t e)
{
	return (struct ss_syscall_text){ .kind = SS_SYSCALL_BLOCKED,
					 .number = number,
					 .args = { a, b, c, d, e } };
}

static bool blocked(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		    uint64_t e)
{
	struct ss_syscall_text call = make(number, a, b, c, d, e);

	return ss_fragile_blocked(&nowhere, 0, &call, false);
}

TEST(test_restarted)
{
	assert_false(blocked(SYS_poll, 0, 0, 5, 0, 0));
	assert_false(blocked(SYS_futex, 0, 0, 0, 4096, 0));
	assert_false(blocked(SYS_wait4, 0, 0, 0, 0, 0));
	assert_false(blocked(SYS_semop, 0, 0, 0, 0, 0));
	assert_false(blocked(SYS_restart_syscall, 0, 0, 0, 0, 0));
	assert_false(blocked(SYS_read, 0, 0, 5, 0, 0)); /* not looked at */
}

TEST(test_time_limits)
{
	assert_false(blocked(SYS_epoll_wait, 3, 0, 1, UINT32_MAX, 0));
	assert_true(blocked(SYS_epoll_wait, 3, 0, 1, 1000, 0));
	assert_false(blocked(SYS_pselect6, 0, 0, 0, 0, 0));
	assert_true(blocked(SYS_pselect6, 0, 0, 0, 0, 4096));
	assert_false(blocked(SYS_ppoll, 0, 0, 0, 0, 0));
	assert_true(blocked(SYS_ppoll, 0, 0, 4096, 0, 0));
	assert_true(blocked(SYS_rt_sigtimedwait, 0, 0, 4096, 0, 0));
}

TEST(test_time_that_is_left)
{
	assert_false(blocked(SYS_nanosleep, 4096, 0, 0, 0, 0));
	assert_true(blocked(SYS_nanosleep, 4096, 8192, 0, 0, 0));
	assert_false(blocked(SYS_clock_nanosleep, 1, 0, 4096, 0, 0));
	assert_true(blocked(SYS_clock_nanosleep, 1, 0, 4096, 8192, 0));
	assert_false(blocked(SYS_clock_nanosleep, 1, TIMER_ABSTIME, 4096, 8192, 0));
}

TEST(test_partial)
{
	struct ss_syscall_text none = { .kind = SS_SYSCALL_NONE, .number = -1 };

	assert_true(blocked(SYS_write, 1, 0, 5, 0, 0));
	assert_true(blocked(SYS_sendmsg, 1, 0, 0, 0, 0));
	assert_true(blocked(SYS_splice, 1, 0, 0, 0, 0));
	assert_true(blocked(SYS_connect, 1, 0, 0, 0, 0));
	assert_true(blocked(SYS_recvfrom, 1, 0, 5, MSG_WAITALL, 0));
	assert_false(blocked(SYS_recvfrom, 1, 0, 5, 0, 0));
	assert_true(blocked(SYS_recvmmsg, 1, 0, 5, 0, 0));
	assert_true(blocked(SYS_io_uring_enter, 1, 1, 1, IORING_ENTER_GETEVENTS, 0));
	/* One that nobody has looked into. */
	assert_true(blocked(SYS_ioctl, 1, 0, 0, 0, 0));
	assert_true(blocked(100000, 0, 0, 0, 0, 0));
	assert_false(ss_fragile_blocked(&nowhere, 0, &none, true));
}

TEST(test_running)
{
	enum { MANY = 1 << 20 };
	struct ss_syscall_text calls[] = {
		make(SYS_write, 1, 0, MANY, 0, 0),
		make(SYS_writev, 1, 0, 1, 0, 0),
		make(SYS_getrandom, 0, MANY, 0, 0, 0),
		make(SYS_copy_file_range, 0, 0, 0, 0, MANY),
		make(-1, 0, 0, 0, 0, 0),
	};
	struct ss_syscall_text others[] = {
		make(SYS_write, 1, 0, 100, 0, 0),
		make(SYS_getrandom, 0, 100, 0, 0, 0),
		make(SYS_futex, 0, 0, 0, 0, 0),
		make(SYS_getppid, 0, 0, 0, 0, 0),
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(calls); i++)
		assert_true(ss_fragile_running(&nowhere, 0, &calls[i], false));
	for (size_t i = 0; i < SS_ARRAY_SIZE(others); i++)
		assert_false(ss_fragile_running(&nowhere, 0, &others[i], true));
}

static bool read_of(const struct ss_target *target, int fd)
{
	struct ss_syscall_text call = make(SYS_read, (uint64_t)fd, 0, 100, 0, 0);

	return ss_fragile_blocked(target, getpid(), &call, true);
}

/* This process, as a target. */
TEST(test_files)
{
	_cleanup_close_ int task_fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
	_cleanup_close_ int event = eventfd(0, 0);
	_cleanup_close_ int device = open("/dev/null", O_RDONLY);
	struct ss_target target = { .pid = getpid(),
				    .arch = &ss_arch_host,
				    .task_fd = task_fd };
	int pair[2];
	int least = 100;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_false(read_of(&target, event));
	assert_true(read_of(&target, device));
	assert_true(read_of(&target, 1000)); /* not open */
	/* Linux 5.6, and not every container allows it. */
	int copy = (int)syscall(438 /* pidfd_getfd */,
				(int)syscall(SYS_pidfd_open, getpid(), 0), pair[0], 0);
	if (copy >= 0) {
		close(copy);
		assert_false(read_of(&target, pair[0]));
	}
	assert_int_equal(
		setsockopt(pair[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)), 0);
	assert_true(read_of(&target, pair[0]));
	/* While it runs, only a look at the socket tells. */
	struct ss_syscall_text receive =
		make(SYS_recvfrom, (uint64_t)pair[0], 0, 8192, 0, 0);
	assert_true(ss_fragile_running(&target, getpid(), &receive, true));
	assert_false(ss_fragile_running(&target, getpid(), &receive, false));
	close(pair[0]);
	close(pair[1]);
}
