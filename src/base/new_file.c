#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

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
