/*
 * Processes by name and cgroup.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "base/vector.h"
#include "base/procfs.h"
#include "process/target.h"
#include "process/process_list.h"

enum { STAT_MAX = 4096, COMMAND_MAX = 4096, CGROUPS_MAX = 128 << 10, PATH_SIZE = 64 };

/* A process whose memory map does not answer blocks the reader of its command line. */
enum { WAIT_MS = 500, BLOCKED_MAX = 3 };

struct ss_process_list {
	SS_VECTOR(struct ss_listed_process) processes;
};

void ss_process_list_free(struct ss_process_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->processes.count; i++) {
		free(ss_drop_const(list->processes.items[i].name));
		free(ss_drop_const(list->processes.items[i].executable));
		free(ss_drop_const(list->processes.items[i].command_line));
	}
	ss_vector_free(&list->processes);
	free(list);
}
SS_DEFINE_CLEANUP(struct ss_process_list, ss_process_list, ss_process_list_free)

size_t ss_process_list_count(const struct ss_process_list *list)
{
	return list->processes.count;
}

const struct ss_listed_process *ss_process_list_at(const struct ss_process_list *list,
						   size_t index)
{
	return &list->processes.items[index];
}

static bool read_stat(int procfs_fd, const char *id, struct ss_buffer *text,
		      struct ss_stat *ret)
{
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "%.20s/stat", id); /* it fits */
	return ss_io_read_record(procfs_fd, path, STAT_MAX, text) == 0 &&
	       ss_stat_parse(text->bytes, text->size, ret);
}

/* Reads the path of the program; NULL: it may not be read. The caller frees it. */
static char *read_executable(int procfs_fd, const char *id)
{
	static const char deleted[] = " (deleted)";
	char path[PATH_SIZE];
	char target[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%.20s/exe", id); /* it fits */
	ssize_t n = readlinkat(procfs_fd, path, target, sizeof(target));
	if (n <= 0)
		return NULL;
	size_t size = (size_t)n;
	size_t suffix = sizeof(deleted) - 1;
	if (size > suffix && memcmp(target + size - suffix, deleted, suffix) == 0)
		size -= suffix;
	return strndup(target, size);
}

/* Takes over executable. Returns false without memory. */
static bool add(struct ss_process_list *list, const struct ss_listed_process *found,
		char *executable)
{
	char *name = strdup(found->name);
	struct ss_listed_process *process = name ? ss_vector_push(&list->processes) :
						   NULL;

	if (!process) {
		free(name);
		free(executable);
		return false;
	}
	*process = *found;
	process->name = name;
	return true;
}

/* Adds a process if the filter selects it. Returns false without memory. */
static bool visit(struct ss_process_list *list, int procfs_fd, const char *id,
		  ss_process_filter *filter, void *data)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat = {};

	if (!read_stat(procfs_fd, id, &text, &stat) || stat.kernel_thread ||
	    stat.state == 'Z' || stat.state == 'X' || stat.pid == getpid())
		return true;
	char *executable = read_executable(procfs_fd, id);
	const struct ss_listed_process process = { .pid = stat.pid,
						   .parent = stat.parent,
						   .name = stat.comm,
						   .executable = executable };
	if (!filter(data, &process)) {
		free(executable);
		return true;
	}
	return add(list, &process, executable);
}

static int compare(const void *a, const void *b)
{
	const struct ss_listed_process *first = a;
	const struct ss_listed_process *second = b;

	return (first->pid > second->pid) - (first->pid < second->pid);
}

struct ss_error *ss_process_list_new(ss_process_filter *filter, void *data,
				     struct ss_process_list **ret)
{
	_cleanup_(ss_process_list_cleanup) struct ss_process_list *list =
		calloc(1, sizeof(*list));
	DIR *dir = ss_io_open_directory(AT_FDCWD, "/proc");
	int errnum = errno;
	bool whole = list != NULL;

	if (!dir)
		return ss_error_new_errno(errnum, "cannot list /proc");
	for (struct dirent *entry; whole && (entry = readdir(dir));) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			whole = visit(list, dirfd(dir), entry->d_name, filter, data);
	}
	(void)closedir(dir); /* only read from */
	if (!whole)
		return ss_error_no_memory();
	if (list->processes.count)
		qsort(list->processes.items, list->processes.count,
		      sizeof(*list->processes.items), compare);
	*ret = take_ptr(list);
	return NULL;
}

bool ss_process_is_in_cgroup(pid_t pid, const char *path)
{
	char file[PATH_SIZE];
	_cleanup_buffer_ struct ss_buffer text = {};

	(void)snprintf(file, sizeof(file), "/proc/%d/cgroup", pid); /* it fits */
	return ss_io_read_path(AT_FDCWD, file, CGROUPS_MAX, &text) == 0 &&
	       ss_cgroup_is_below(text.bytes, text.size, path);
}

/* Command lines ------------------------------------------------------------- */

/* From the child that reads them. */
struct answer {
	uint32_t size;
	char bytes[COMMAND_MAX];
};

/* Arguments are separated by NUL bytes. */
static void read_command(pid_t pid, struct answer *answer)
{
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", pid); /* it fits */
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : ss_io_pread(fd, answer->bytes, COMMAND_MAX, 0);
	if (fd >= 0)
		(void)close(fd); /* only read from */
	answer->size = n > 0 ? (uint32_t)n : 0;
	while (answer->size && answer->bytes[answer->size - 1] == '\0')
		answer->size--;
	for (uint32_t i = 0; i < answer->size; i++) {
		if (answer->bytes[i] == '\0')
			answer->bytes[i] = ' ';
	}
}

struct commands {
	const struct ss_process_list *list;
	size_t first;
	struct answer *answer;
};

/* In the child. */
static int write_commands(void *data, int out)
{
	const struct commands *commands = data;
	const struct ss_process_list *list = commands->list;

	for (size_t i = commands->first; i < list->processes.count; i++) {
		read_command(list->processes.items[i].pid, commands->answer);
		if (ss_io_write_all(out, commands->answer, sizeof(*commands->answer)) !=
		    0)
			break;
	}
	return 0;
}

/* Returns false at the end, or if the child is blocked. */
static bool read_answer(int in, struct answer *answer)
{
	size_t have = 0;

	while (have < sizeof(*answer)) {
		struct pollfd pollfd = { .fd = in, .events = POLLIN };
		if (poll(&pollfd, 1, WAIT_MS) <= 0)
			return false;
		ssize_t n = read(in, (char *)answer + have, sizeof(*answer) - have);
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return answer->size <= COMMAND_MAX;
}

/* Reads the command lines from index first on. Returns the index of the process that
   blocked the child, or the count. */
static size_t read_commands(struct ss_process_list *list, size_t first)
{
	const struct ss_child_options options = { .channel = SS_CHILD_WRITES,
						  .close_files = true };
	_cleanup_free_ struct answer *answer = calloc(1, sizeof(*answer));
	struct commands commands = { list, first, answer };
	struct ss_child child = SS_NO_CHILD;
	size_t next = first;

	if (!answer)
		return list->processes.count;
	_cleanup_error_ struct ss_error *error =
		ss_child_start(&options, write_commands, &commands, &child);
	if (error)
		return list->processes.count;
	while (next < list->processes.count && read_answer(child.channel, answer)) {
		if (answer->size)
			list->processes.items[next].command_line =
				strndup(answer->bytes, answer->size);
		next++;
	}
	(void)ss_child_end(&child); /* or it is abandoned */
	return next;
}

void ss_process_list_read_commands(struct ss_process_list *list)
{
	size_t next = 0;

	for (int i = 0; i < BLOCKED_MAX && next < list->processes.count; i++)
		next = read_commands(list, next) + 1;
}
