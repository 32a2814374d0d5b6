/*
 * Processes by name and cgroup; their command lines and environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vector.h"
#include "base/procfs.h"
#include "base/search.h"
#include "process/files.h"
#include "process/target.h"
#include "process/process_list.h"

enum {
	STAT_MAX = 4096,
	CGROUPS_MAX = 128 << 10,
	PATH_SIZE = 64,
	/* The kernel limits arguments and environment together to a quarter of the limit of the
	   stack. */
	ENVIRONMENT_MAX = 4 << 20,
	BLOCKED_MAX = 3,
};

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

SS_DEFINE_COMPARE(compare, struct ss_listed_process, pid)

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

/* What memory of a process contains, which may not answer: read in a child ------------ */

static void run(struct ss_opener *opener)
{
	for (size_t i = 0; i < SS_OPENER_KEEP_MAX; i++)
		opener->keep[i] = -1;
	opener->child_only = true;
	ss_opener_run(opener);
}

/* The value of a variable in "NAME=VALUE" strings that end with NUL; or NULL. */
static const char *find_variable(const struct ss_buffer *text, const char *name)
{
	size_t length = strlen(name);
	const char *end = text->bytes + text->size;

	for (const char *at = text->bytes; at < end;) {
		size_t size = strnlen(at, (size_t)(end - at));
		if (size > length && memcmp(at, name, length) == 0 && at[length] == '=' &&
		    at + size < end)
			return at + length + 1;
		at += size + 1;
	}
	return NULL;
}

struct variable {
	pid_t pid;
	const char *name;
	char *value;
};

static void read_variable(const struct ss_opener *opener, size_t item,
			  struct ss_opened *ret)
{
	const struct variable *variable = opener->data;
	char path[PATH_SIZE];
	_cleanup_buffer_ struct ss_buffer text = {};

	(void)item;
	(void)snprintf(path, sizeof(path), "/proc/%d/environ",
		       variable->pid); /* it fits */
	const char *value = ss_io_read_path(AT_FDCWD, path, ENVIRONMENT_MAX, &text) == 0 ?
				    find_variable(&text, variable->name) :
				    NULL;
	const size_t size = value ? strlen(value) + 1 : 0;
	if (size == 0 || size > sizeof(ret->header))
		return;
	memcpy(ret->header, value, size);
	ret->header_size = (uint32_t)size;
}

static void take_variable(const struct ss_opener *opener, size_t item,
			  struct ss_opened *opened)
{
	struct variable *variable = opener->data;

	(void)item;
	if (opened && opened->header_size)
		variable->value =
			strndup((const char *)opened->header, sizeof(opened->header));
}

char *ss_target_read_variable(const struct ss_target *target, const char *name)
{
	struct variable variable = { .pid = target->pid, .name = name };
	bool wanted = true;

	run(&(struct ss_opener){ .work = read_variable,
				 .take = take_variable,
				 .data = &variable,
				 .wanted = &wanted,
				 .count = 1 });
	_cleanup_error_ struct ss_error *error = ss_target_check(target);
	if (error) /* perhaps it was another process */
		free(take_ptr(variable.value));
	return variable.value;
}

struct commands {
	struct ss_process_list *list;
	bool *wanted;
	unsigned blocked;
};

/* Arguments are separated by NUL bytes. */
static void read_command(const struct ss_opener *opener, size_t item,
			 struct ss_opened *ret)
{
	const struct commands *commands = opener->data;
	char path[PATH_SIZE];

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", /* it fits */
		       commands->list->processes.items[item].pid);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : ss_io_pread(fd, ret->header, sizeof(ret->header), 0);
	ret->header_size = n > 0 ? (uint32_t)n : 0;
	while (ret->header_size && ret->header[ret->header_size - 1] == '\0')
		ret->header_size--;
	for (uint32_t i = 0; i < ret->header_size; i++) {
		if (ret->header[i] == '\0')
			ret->header[i] = ' ';
	}
}

static void take_command(const struct ss_opener *opener, size_t item,
			 struct ss_opened *opened)
{
	struct commands *commands = opener->data;
	struct ss_listed_process *process = &commands->list->processes.items[item];

	if (opened && opened->header_size)
		process->command_line = strndup(
			(const char *)opened->header,
			SS_MIN((size_t)opened->header_size, sizeof(opened->header)));
	else if (!opened && ++commands->blocked == BLOCKED_MAX)
		memset(commands->wanted, 0, opener->count * sizeof(*commands->wanted));
}

void ss_process_list_read_commands(struct ss_process_list *list)
{
	_cleanup_free_ bool *wanted = malloc(list->processes.count + 1);
	struct commands commands = { .list = list, .wanted = wanted };

	if (!wanted)
		return;
	memset(wanted, true, list->processes.count);
	run(&(struct ss_opener){ .work = read_command,
				 .take = take_command,
				 .data = &commands,
				 .wanted = wanted,
				 .count = list->processes.count });
}
