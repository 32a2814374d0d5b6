#include "process/freezer.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/proc_process.h"

enum {
	LINES_MAX = 1 << 18,	/* a line with a path for each hierarchy */
	THREADS_MAX = 64 << 20, /* more than the kernel allows */
};

/* Usual mount points: alone, or beside version 1. */
static int open_hierarchy(void)
{
	static const char *const mounts[] = { "/sys/fs/cgroup",
					      "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < SS_ARRAY_SIZE(mounts); i++) {
		struct statfs fs;
		int fd = open(mounts[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return fd;
		close_cleanup(&fd);
	}
	return -1;
}

static char *read_cgroup(const struct ss_target *target, pid_t tid,
			 struct ss_buffer *text)
{
	char name[64];
	const char *path;
	size_t size;

	(void)snprintf(name, sizeof(name), "%d/cgroup", tid); /* always fits */
	if (ss_io_read_path(target->task_fd, name, LINES_MAX, text) != 0 ||
	    !ss_cgroup_find_path(text->bytes, text->size, &path, &size))
		return NULL;
	return strndup(path, size);
}

static bool read_file(int hierarchy, const char *cgroup, const char *name,
		      struct ss_buffer *text)
{
	char path[PATH_MAX];
	int size = snprintf(path, sizeof(path), ".%s/%s", cgroup, name);

	return size > 0 && (size_t)size < sizeof(path) &&
	       ss_io_read_path(hierarchy, path, THREADS_MAX, text) == 0;
}

/* The mount may show another part of the hierarchy, where a cgroup of the same name
   does not contain the thread. */
static bool is_frozen(int hierarchy, const char *cgroup, pid_t tid,
		      struct ss_buffer *text)
{
	return read_file(hierarchy, cgroup, "cgroup.events", text) &&
	       ss_cgroup_is_frozen(text->bytes, text->size) &&
	       read_file(hierarchy, cgroup, "cgroup.threads", text) &&
	       ss_cgroup_has_thread(text->bytes, text->size, tid);
}

/* A cgroup is frozen itself or with an ancestor: truncates the path to the nearest one
   that was frozen explicitly. */
static void cut_to_freezer(int hierarchy, char *cgroup, struct ss_buffer *text)
{
	_cleanup_free_ char *at = strdup(cgroup);

	while (at && *at) {
		if (read_file(hierarchy, at, "cgroup.freeze", text) &&
		    text->bytes[0] == '1') {
			cgroup[strlen(at)] = '\0';
			return;
		}
		*strrchr(at, '/') = '\0';
	}
}

char *ss_freezer_find(const struct ss_target *target, pid_t tid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	_cleanup_free_ char *cgroup = read_cgroup(target, tid, &text);
	_cleanup_close_ int hierarchy = cgroup ? open_hierarchy() : -1;

	if (hierarchy < 0 || !is_frozen(hierarchy, cgroup, tid, &text))
		return NULL;
	cut_to_freezer(hierarchy, cgroup, &text);
	return take_ptr(cgroup);
}
