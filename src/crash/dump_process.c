/*
 * The process whose dump is being written: whether its number is still its own, and whose it is.
 */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/procfs.h"
#include "crash/dump.h"

enum {
	SMALL = 4096,
	NOBODY = 65534,
	PIDFD_OPEN = 434, /* headers before Linux 5.3 lack it */
};

static bool is_pidfd(int fd)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_fdinfo info;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd); /* always fits */
	return fd >= 0 && ss_io_read_record(AT_FDCWD, path, SMALL, &text) == 0 &&
	       ss_fdinfo_parse(text.bytes, text.size, &info) && info.has_pid;
}

int ss_dump_find_process(pid_t pid, int passed)
{
	return is_pidfd(passed) ? passed : (int)syscall(PIDFD_OPEN, pid, 0);
}

bool ss_dump_is_readable(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid); /* always fits */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

/* Since boot, in ticks. */
static bool read_start_time(const char *path, uint64_t *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;

	if (ss_io_read_record(AT_FDCWD, path, SMALL, &text) != 0 ||
	    !ss_stat_parse(text.bytes, text.size, &stat))
		return false;
	*ret = stat.start_time;
	return true;
}

/* Without a descriptor: the kernel has started this program after the process that crashed, and
   before any other one could have its number. */
enum ss_dump_identity ss_dump_identify(pid_t pid, int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };
	char path[64];
	uint64_t ours;
	uint64_t theirs;

	if (pidfd >= 0)
		return poll(&poll_fd, 1, 0) > 0 ? SS_DUMP_GONE : SS_DUMP_SAME;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid); /* always fits */
	return read_start_time("/proc/self/stat", &ours) &&
			       read_start_time(path, &theirs) && theirs < ours ?
		       SS_DUMP_SAME :
		       SS_DUMP_UNKNOWN;
}

static bool is_same_file(int one, int other)
{
	struct stat a;
	struct stat b;

	return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Who created a user namespace, or the one around it that is within ours. fd is closed. */
static uid_t find_creator(int fd, int ours)
{
	uid_t uid = NOBODY;
	bool found = false;

	while (!found && fd >= 0) {
		int parent = ioctl(fd, NS_GET_PARENT);
		found = parent >= 0 && is_same_file(parent, ours);
		if (found)
			(void)ioctl(fd, NS_GET_OWNER_UID, &uid); /* Linux 4.11 */
		(void)close(fd);
		fd = parent;
	}
	close_cleanup(&fd);
	return uid;
}

/* A user who has many ids in user namespaces is one user; and containers of root are none of the
   users of the system. */
static uid_t find_account(pid_t pid, bool other_root)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_status status;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid); /* always fits */
	_cleanup_close_ int theirs = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int ours = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	if (theirs >= 0 && ours >= 0 && !is_same_file(theirs, ours)) {
		uid_t creator = find_creator(take_fd(theirs), ours);
		if (creator != 0)
			return creator;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid); /* always fits */
	if (ss_io_read_record(AT_FDCWD, path, SMALL, &text) != 0 ||
	    !ss_status_parse(text.bytes, text.size, &status))
		return NOBODY;
	return other_root && status.uid[0] < SS_DUMP_SYSTEM_UIDS ? NOBODY : status.uid[0];
}

void ss_dump_describe(pid_t pid, struct ss_dump_process *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	char path[64];
	struct stat owner;
	struct stat ours;
	struct stat theirs;

	*ret = (struct ss_dump_process){ .root = -1 };
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid); /* always fits */
	if (ss_io_read_record(AT_FDCWD, path, SS_DUMP_NAME_MAX, &text) == 0)
		(void)snprintf(ret->name, sizeof(ret->name), "%.*s",
			       (int)strcspn(text.bytes, "\n"), text.bytes);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid); /* always fits */
	ssize_t n = readlink(path, ret->executable, sizeof(ret->executable) - 1);
	ret->executable[n > 0 ? n : 0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d", pid); /* always fits */
	if (stat(path, &owner) == 0) {
		ret->uid = owner.st_uid;
		ret->gid = owner.st_gid;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/root", pid); /* always fits */
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &theirs) == 0 && stat("/", &ours) == 0 &&
	    (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino))
		ret->root = take_fd(fd);
	ret->account = find_account(pid, ret->root >= 0);
}
