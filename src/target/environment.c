/*
 * The environment of a process.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/own_child.h"
#include "target/target.h"

/* The kernel limits arguments and environment together to a quarter of the limit of the stack. A
   longer value is no label. */
enum { ENVIRONMENT_MAX = 4 << 20, VALUE_MAX = 4096, PATH_SIZE = 64 };

/* Memory that does not answer blocks the reader. */
enum { WAIT_MS = 500 };

/* The value of a variable in "NAME=VALUE" strings that end with NUL; or NULL. */
static const char *find(const struct ss_buffer *text, const char *name)
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

__attribute__((noreturn)) static void run_child(pid_t pid, const char *name, int out)
{
	char path[PATH_SIZE];
	_cleanup_buffer_ struct ss_buffer text = {};

	ss_own_child_close_files(&out, 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid); /* it fits */
	const char *value = ss_io_read_path(AT_FDCWD, path, ENVIRONMENT_MAX, &text) == 0 ?
				    find(&text, name) :
				    NULL;
	/* At most what a pipe takes at once; with the NUL, so that a value is whole. */
	if (value && strlen(value) < VALUE_MAX)
		(void)ss_io_write_all(out, value, strlen(value) + 1);
	_exit(0);
}

/* The value that the child writes; NULL: none, or it is blocked. */
static char *read_value(int in)
{
	char value[VALUE_MAX];
	struct pollfd pollfd = { .fd = in, .events = POLLIN };
	ssize_t n = poll(&pollfd, 1, WAIT_MS) > 0 ? read(in, value, sizeof(value)) : 0;

	return n > 0 && value[n - 1] == '\0' ? strdup(value) : NULL;
}

char *ss_target_read_variable(const struct ss_target *target, const char *name)
{
	int fds[2];
	int status = 0;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return NULL;
	pid_t child = fork();
	if (child == 0)
		run_child(target->pid, name, fds[1]);
	(void)close(fds[1]); /* a pipe */
	char *value = child < 0 ? NULL : read_value(fds[0]);
	(void)close(fds[0]);
	if (child > 0)
		(void)ss_own_child_end(child, &status); /* or it is abandoned */
	_cleanup_error_ struct ss_error *error = ss_target_check(target);
	if (error) { /* perhaps it was another process */
		free(value);
		return NULL;
	}
	return value;
}
