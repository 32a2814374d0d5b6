#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
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

enum {
	MODE = 0600,
	NAMES_TRIED = 8,
	/* of the name in a temporary one: names have at most 255 bytes, 143 on some file
	   systems */
	NAME_PART = 100,
};

static const char suffix[] = ".part";

/* A name that nobody can predict. */
static void choose_name(struct ss_new_file *file)
{
	uint64_t random = (uintptr_t)file ^ (uint64_t)getpid();

	/* May fail early after boot; nothing is overwritten in any case. */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	(void)snprintf(file->temporary, sizeof(file->temporary), "%.*s.%08x%s", NAME_PART,
		       file->name, (unsigned)random, suffix); /* fits */
}

static int create_named(struct ss_new_file *file)
{
	int errnum = EEXIST;

	for (int i = 0; i < NAMES_TRIED && errnum == EEXIST; i++) {
		choose_name(file);
		file->fd = openat(file->directory, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				  MODE);
		if (file->fd >= 0)
			return 0;
		errnum = errno;
	}
	*file->temporary = '\0';
	return -errnum;
}

int ss_new_file_create(int directory, const char *name, struct ss_new_file *ret)
{
	*ret = (struct ss_new_file){ .fd = -1, .directory = directory, .name = name };
	ret->fd = openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, MODE);
	/* Unknown to the file system, or forbidden: the second way has the true error. */
	return ret->fd >= 0 ? 0 : create_named(ret);
}

static int link_unnamed(const struct ss_new_file *file, const char *name)
{
	char path[64];

	/* AT_EMPTY_PATH needs a privilege. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd); /* fits */
	return linkat(AT_FDCWD, path, file->directory, name, AT_SYMLINK_FOLLOW) == 0 ?
		       0 :
		       -errno;
}

static int give_temporary_name(struct ss_new_file *file)
{
	int error = -EEXIST;

	for (int i = 0; i < NAMES_TRIED && error == -EEXIST; i++) {
		choose_name(file);
		error = link_unnamed(file, file->temporary);
	}
	if (error)
		*file->temporary = '\0';
	return error;
}

/* Without RENAME_NOREPLACE, which not every file system has. */
static int move_by_link(const struct ss_new_file *file)
{
	if (linkat(file->directory, file->temporary, file->directory, file->name, 0) != 0)
		return -errno;
	(void)unlinkat(file->directory, file->temporary, 0); /* it has both names */
	return 0;
}

static int move(const struct ss_new_file *file, bool replace)
{
	if (renameat2(file->directory, file->temporary, file->directory, file->name,
		      replace ? 0 : RENAME_NOREPLACE) == 0)
		return 0;
	return errno == EINVAL && !replace ? move_by_link(file) : -errno;
}

static bool is_published(const struct ss_new_file *file)
{
	struct stat own;
	struct stat found;

	return fstat(file->fd, &own) == 0 &&
	       fstatat(file->directory, file->name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
	       own.st_dev == found.st_dev && own.st_ino == found.st_ino;
}

int ss_new_file_publish(struct ss_new_file *file, bool replace)
{
	int error = replace && !*file->temporary ? give_temporary_name(file) : 0;

	if (!error)
		error = *file->temporary ? move(file, replace) :
					   link_unnamed(file, file->name);
	if (error && is_published(file))
		error = 0;
	if (!error)
		*file->temporary = '\0';
	return error;
}

bool ss_new_file_is_temporary(const char *name)
{
	size_t length = strlen(name);

	return length > strlen(suffix) &&
	       strcmp(name + length - strlen(suffix), suffix) == 0;
}

void ss_new_file_deinit(struct ss_new_file *file)
{
	if (*file->temporary)
		(void)unlinkat(file->directory, file->temporary, 0); /* or it remains */
	*file->temporary = '\0';
	close_cleanup(&file->fd);
	file->fd = -1;
}
