/*
 * The environment of a process.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/cleanup.h"
#include "process/target.h"
#include "process/process_list.h"

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

struct wanted {
	pid_t pid;
	const char *name;
};

/* In the child. */
static int write_value(void *data, int out)
{
	const struct wanted *wanted = data;
	char path[PATH_SIZE];
	_cleanup_buffer_ struct ss_buffer text = {};

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", wanted->pid); /* it fits */
	const char *value = ss_io_read_path(AT_FDCWD, path, ENVIRONMENT_MAX, &text) == 0 ?
				    find(&text, wanted->name) :
				    NULL;
	/* At most what a pipe takes at once; with the NUL, so that a value is whole. */
	if (value && strlen(value) < VALUE_MAX)
		(void)ss_io_write_all(out, value, strlen(value) + 1);
	return 0;
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
	const struct ss_child_options options = { .channel = SS_CHILD_WRITES,
						  .close_files = true };
	struct wanted wanted = { target->pid, name };
	struct ss_child child = SS_NO_CHILD;
	char *value = NULL;
	_cleanup_error_ struct ss_error *failed =
		ss_child_start(&options, write_value, &wanted, &child);

	if (!failed)
		value = read_value(child.channel);
	(void)ss_child_end(&child); /* or it is abandoned */
	_cleanup_error_ struct ss_error *error = ss_target_check(target);
	if (error) { /* perhaps it was another process */
		free(value);
		return NULL;
	}
	return value;
}
