/*
 * Sets and restores /proc/sys/kernel/core_pattern.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/core_handler.h"
#include "cli/core_reports.h"
#include "cli/failure.h"

/* The kernel's limit (CORENAME_MAX_SIZE), with the NUL. */
enum { PATTERN_MAX = 128, LIMIT = 16, SMALL = 4096 };

static const char pattern_file[] = "/proc/sys/kernel/core_pattern";
static const char limit_file[] = "/proc/sys/kernel/core_pipe_limit";
static const char saved_name[] = "core_pattern.before";

static struct ss_error *read_line(const char *path, char **ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int error = ss_io_read_path(AT_FDCWD, path, SMALL, &text);

	if (error)
		return ss_error_new_errno(-error, "cannot read %s", path);
	*ret = strndup(text.bytes, strcspn(text.bytes, "\n"));
	return *ret ? NULL : ss_error_no_memory();
}

static struct ss_error *write_line(const char *path, const char *line, int flags)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
	int errnum = errno;

	if (fd < 0)
		return ss_error_with_remedy(
			ss_error_new_errno(errnum, "cannot write %s", path),
			"sudo stacksnap core --install");
	int error = ss_io_write_all(fd, line, strlen(line));
	return error ? ss_error_new_errno(-error, "cannot write %s", path) : NULL;
}

/* Shows what is done before it is done. */
static struct ss_error *set(const char *path, const char *line)
{
	_cleanup_free_ char *before = NULL;
	struct ss_error *error = read_line(path, &before);

	if (error)
		return error;
	(void)printf("%s:\n  now:  %s\n  then: %s\n", path, before, line);
	(void)fflush(stdout);
	return write_line(path, line, 0);
}

static struct ss_error *make_pattern(const struct ss_core_handler *handler,
				     char ret[PATTERN_MAX])
{
	char program[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (size <= 0)
		return ss_error_new_errno(errno, "/proc/self/exe");
	program[size] = '\0';
	/* The kernel divides the line at spaces, without quotes. */
	if (strpbrk(program, " %") || strpbrk(handler->directory, " %") ||
	    (handler->forward && strpbrk(handler->forward, " %")))
		return ss_error_new(
			SS_ERROR_INVALID,
			"core_pattern allows neither spaces nor %% in the paths "
			"of the program, --directory and --forward");
	bool elsewhere = strcmp(handler->directory, SS_CORE_DIRECTORY) != 0;
	int n = snprintf(ret, PATTERN_MAX,
			 "|%s core --handler%s%s%s%s %%P %%I %%s %%t %%d %%F", program,
			 elsewhere ? " --directory=" : "",
			 elsewhere ? handler->directory : "",
			 handler->forward ? " --forward=" : "",
			 handler->forward ? handler->forward : "");
	if (n > 0 && n < PATTERN_MAX)
		return NULL;
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID,
			     "core_pattern would be longer than %d bytes",
			     PATTERN_MAX - 1),
		"install the program at a shorter path, such as /usr/bin/stacksnap");
}

static char *saved_path(const struct ss_core_handler *handler)
{
	char *path = NULL;

	return asprintf(&path, "%s/%s", handler->directory, saved_name) < 0 ? NULL : path;
}

static bool is_ours(const char *pattern)
{
	const char *space = strchr(pattern, ' ');
	static const char ours[] = " core --handler ";

	return *pattern == '|' && space && strncmp(space, ours, strlen(ours)) == 0;
}

static struct ss_error *install(const struct ss_core_handler *handler)
{
	_cleanup_free_ char *before = NULL;
	_cleanup_free_ char *saved = saved_path(handler);
	char pattern[PATTERN_MAX];
	char limit[16];

	if (!saved)
		return ss_error_no_memory();
	struct ss_error *error = make_pattern(handler, pattern);
	if (!error)
		error = ss_core_reports_prepare(handler->directory);
	if (!error)
		error = read_line(pattern_file, &before);
	if (!error && !is_ours(before))
		error = write_line(saved, before, O_CREAT | O_TRUNC | O_NOFOLLOW);
	if (error)
		return error;
	/* The kernel then waits for the handler also after it has written everything. */
	(void)snprintf(limit, sizeof(limit), "%d", LIMIT); /* always fits */
	error = set(limit_file, limit);
	return error ? error : set(pattern_file, pattern);
}

static struct ss_error *uninstall(const struct ss_core_handler *handler)
{
	_cleanup_free_ char *now = NULL;
	_cleanup_free_ char *before = NULL;
	_cleanup_free_ char *saved = saved_path(handler);

	if (!saved)
		return ss_error_no_memory();
	struct ss_error *error = read_line(pattern_file, &now);
	if (!error && !is_ours(now))
		return ss_error_new(SS_ERROR_INVALID,
				    "stacksnap is not the handler: core_pattern is '%s'",
				    now);
	if (!error)
		error = read_line(saved, &before);
	if (!error)
		error = set(pattern_file, before);
	if (!error)
		(void)unlink(saved); /* the next --install replaces it */
	return error;
}

static int end(struct ss_error *error)
{
	_cleanup_error_ struct ss_error *owned = error;

	if (!owned)
		return SS_STATUS_WHOLE;
	ss_failure_print(owned);
	return SS_STATUS_NOTHING;
}

int ss_core_handler_install(const struct ss_core_handler *handler)
{
	return end(install(handler));
}

int ss_core_handler_uninstall(const struct ss_core_handler *handler)
{
	return end(uninstall(handler));
}
