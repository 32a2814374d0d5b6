#include "cli/core_reports.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vector.h"

enum { MINUTE_S = 60, DIRECTORY_MODE = 0755, SMALL = 4096 };

/* Names of reports begin with this: other files are left alone. */
static const char prefix[] = "crash-";

struct file {
	char *name; /* owned */
	time_t time_s;
	uint64_t size;
};

typedef SS_VECTOR(struct file) file_list;

static void free_files(file_list *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->items[i].name);
	ss_vector_free(files);
}

static int compare_files(const void *a, const void *b)
{
	const struct file *x = a;
	const struct file *y = b;

	return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

/* Lists as many reports as there is memory for, the oldest first. */
static void list_files(int fd, file_list *ret)
{
	DIR *dir = ss_io_open_directory(fd, ".");

	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct stat status;
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		char *name = strdup(entry->d_name);
		struct file *file = name ? ss_vector_push(ret) : NULL;
		if (!file) {
			free(name);
			break;
		}
		*file = (struct file){ .name = name,
				       .time_s = status.st_mtim.tv_sec,
				       .size = (uint64_t)status.st_size };
	}
	(void)closedir(dir); /* only read from */
	if (ret->count > 1)
		qsort(ret->items, ret->count, sizeof(*ret->items), compare_files);
}

static int open_directory(const char *directory)
{
	return open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct ss_error *ss_core_reports_prepare(const char *directory)
{
	struct stat status;

	if (mkdir(directory, DIRECTORY_MODE) == 0)
		/* Owners can open their reports; only root can list them. */
		(void)chmod(directory, S_IRWXU | S_IXGRP | S_IXOTH);
	_cleanup_close_ int fd = open_directory(directory);
	int errnum = errno;
	if (fd < 0 || fstat(fd, &status) != 0)
		return ss_error_new_errno(errnum, "cannot open '%s'", directory);
	if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)))
		return ss_error_new(
			SS_ERROR_DENIED,
			"'%s' belongs to another user, or others may write to "
			"it",
			directory);
	return NULL;
}

bool ss_core_reports_are_few(const char *directory, unsigned rate)
{
	_cleanup_close_ int fd = open_directory(directory);
	_cleanup_(free_files) file_list files = {};
	time_t now = time(NULL);
	unsigned recent = 0;

	if (fd >= 0)
		list_files(fd, &files);
	for (size_t i = 0; i < files.count; i++)
		recent += files.items[i].time_s > now - MINUTE_S;
	return recent < rate;
}

struct ss_error *ss_core_reports_name(const char *directory,
				      const struct ss_core_process *process,
				      const char *format, char ret[SS_CORE_REPORT_PATH])
{
	char name[SS_DUMP_NAME_MAX];
	size_t size = 0;

	for (; process->about.name[size] && size + 1 < sizeof(name); size++) {
		char c = process->about.name[size];
		bool plain = isascii(c) && (isalnum(c) || strchr("._-", c));
		name[size] = plain ? c : '_';
	}
	name[size] = '\0';
	int n = snprintf(ret, SS_CORE_REPORT_PATH, "%s/%s%s-%d-%llu.%s", directory,
			 prefix, name, process->pid, (unsigned long long)process->time_s,
			 format);
	if (n < 0 || n >= SS_CORE_REPORT_PATH || strchr(directory, '%'))
		return ss_error_new(SS_ERROR_INVALID, "--directory: unsuitable path '%s'",
				    directory);
	return NULL;
}

void ss_core_reports_expire(const char *directory, uint64_t quota)
{
	_cleanup_close_ int fd = open_directory(directory);
	_cleanup_(free_files) file_list files = {};
	uint64_t total = 0;

	if (fd >= 0)
		list_files(fd, &files);
	for (size_t i = 0; i < files.count; i++)
		total += files.items[i].size;
	for (size_t i = 0; i < files.count && total > quota; i++) {
		if (unlinkat(fd, files.items[i].name, 0) == 0)
			total -= files.items[i].size;
	}
}
