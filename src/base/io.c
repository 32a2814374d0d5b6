#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { READ_MIN = 4096 };

int ss_io_read_all(int fd, size_t max, struct ss_buffer *text)
{
	ss_buffer_clear(text);
	for (;;) {
		size_t needed = SS_MAX(text->size + 1, (size_t)READ_MIN - 1);
		if (!ss_buffer_reserve(text, needed))
			return -ENOMEM;
		ssize_t n = read(fd, text->bytes + text->size,
				 text->capacity - text->size - 1);
		int errnum = errno;
		if (n < 0 && errnum == EINTR)
			continue;
		if (n < 0)
			return -errnum;
		text->size += (size_t)n;
		text->bytes[text->size] = '\0';
		if (n == 0)
			return 0;
		if (text->size > max)
			return -EFBIG;
	}
}

int ss_io_read_path(int dirfd, const char *path, size_t max, struct ss_buffer *text)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int errnum = errno;

	return fd < 0 ? -errnum : ss_io_read_all(fd, max, text);
}

int ss_io_read_record(int dirfd, const char *path, size_t max, struct ss_buffer *text)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int errnum = errno;

	ss_buffer_clear(text);
	if (fd < 0)
		return -errnum;
	if (!ss_buffer_reserve(text, max))
		return -ENOMEM;
	ssize_t n = read(fd, text->bytes, max);
	errnum = errno;
	if (n < 0)
		return -errnum;
	text->size = (size_t)n;
	text->bytes[n] = '\0';
	return 0;
}

int ss_io_reopen(int fd)
{
	char path[40];
	struct stat status;

	if (fstat(fd, &status) != 0)
		return -1;
	if (!S_ISREG(status.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd); /* fits */
	/* O_NONBLOCK: fails where a lease (fcntl(2)) would have to be waited for. */
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

DIR *ss_io_open_directory(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	int errnum = errno;

	if (!dir)
		close_cleanup(&fd);
	errno = errnum;
	return dir;
}

ssize_t ss_io_pread(int fd, void *bytes, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)bytes + done, size - done,
				  (off_t)(offset + done));
		int errnum = errno;
		if (n < 0 && errnum == EINTR)
			continue;
		if (n < 0 && done == 0)
			return -errnum;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int ss_io_create_unnamed(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	return fd >= 0 ? fd : open("/tmp", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
}

int ss_io_keep_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	return (int)SS_MIN(limit.rlim_cur / 2, (rlim_t)INT_MAX);
}

bool ss_io_may_keep(int fd)
{
	return fd < ss_io_keep_max();
}

bool ss_io_can_open(unsigned count)
{
	struct rlimit limit;
	/* It gets the lowest number that is free. */
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC);

	return fd >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)fd + count <= limit.rlim_cur;
}

int ss_io_write_all(int fd, const void *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(fd, (const char *)bytes + done, size - done);
		int errnum = errno;
		if (n < 0 && errnum != EINTR)
			return -errnum;
		if (n > 0)
			done += (size_t)n;
	}
	return 0;
}
