#include "process/children.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/scan.h"

enum { TEXT_MAX = 1 << 20 };

/* proc_pid_task_tid_children(5): ids, each followed by a space. */
static bool add_children(const struct ss_target *target, const char *tid,
			 struct ss_buffer *text, struct ss_children *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%.20s/children", tid); /* always fits */
	if (ss_io_read_path(target->task_fd, path, TEXT_MAX, text) != 0)
		return true;
	struct ss_scan scan = { .at = text->bytes, .end = text->bytes + text->size };
	for (pid_t pid; ss_scan_next_pid(&scan, &pid);) {
		pid_t *slot = ss_vector_push(&ret->pids);
		if (!slot)
			return false;
		*slot = pid;
	}
	return true;
}

bool ss_target_list_children(const struct ss_target *target, struct ss_children *ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	DIR *dir = ss_io_open_directory(target->task_fd, ".");
	bool whole = true;

	ret->pids.count = 0;
	if (!dir)
		return true;
	for (struct dirent *entry; whole && (entry = readdir(dir));) {
		if (entry->d_name[0] != '.')
			whole = add_children(target, entry->d_name, &text, ret);
	}
	(void)closedir(dir); /* only read from */
	return whole;
}

bool ss_target_is_exiting(const struct ss_target *target)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;
	pid_t live = ss_target_find_live(target);

	return !live || !ss_target_read_stat(target, live, &text, &stat) || stat.exiting;
}

void ss_target_describe(const struct ss_target *target, char **name, char **executable)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;
	char path[PATH_MAX];

	*name = *executable = NULL;
	if (ss_target_read_stat(target, target->pid, &text, &stat))
		*name = strdup(stat.comm);
	ssize_t n = readlinkat(target->proc_fd, "exe", path, sizeof(path));
	if (n > 0)
		*executable = strndup(path, (size_t)n);
}
