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
/* What was there before, a line each; as they do, it lasts until the next boot. */
static const char saved_file[] = "/run/stacksnap.core_pattern";

static struct ss_error *read_line(const char *path, char **ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int error = ss_io_read_path(AT_FDCWD, path, SMALL, &text);

	if (error)
		return ss_error_new_errno(-error, "cannot read %s", path);
	*ret = strndup(text.bytes, strcspn(text.bytes, "\n"));
	return *ret ? NULL : ss_error_no_memory();
}

static struct ss_error *write_text(const char *path, const char *text, int flags)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
	int errnum = errno;

	if (fd < 0)
		return ss_error_with_remedy(
			ss_error_new_errno(errnum, "cannot write %s", path),
			"sudo stacksnap core --install");
	int error = ss_io_write_all(fd, text, strlen(text));
	return error ? ss_error_new_errno(-error, "cannot write %s", path) : NULL;
}

/* Shows what is done before it is done. */
static struct ss_error *set(const char *path, const char *line)
{
	_cleanup_free_ char *before = NULL;
	_cleanup_free_ char *text = NULL;
	struct ss_error *error = read_line(path, &before);

	if (error)
		return error;
	if (asprintf(&text, "%s\n", line) < 0) /* without a newline, none can be empty */
		return ss_error_no_memory();
	(void)printf("%s:\n  now:  %s\n  then: %s\n", path, before, line);
	(void)fflush(stdout);
	return write_text(path, text, 0);
}

/* The kernel divides the line at spaces, without quotes. */
static void add_word(struct ss_buffer *pattern, const char *word, bool *suitable)
{
	ss_buffer_printf(pattern, " %s", word);
	*suitable &= *word && !strpbrk(word, " %\n");
}

/* The handler gets all options of --install. */
static struct ss_error *make_pattern(const struct ss_core_handler *handler,
				     struct ss_buffer *ret)
{
	char program[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
	bool suitable = true;

	if (size <= 0)
		return ss_error_new_errno(errno, "/proc/self/exe");
	program[size] = '\0';
	ss_buffer_printf(ret, "|%s core --handler", program);
	for (size_t i = 0; i < handler->option_count; i++) {
		if (i != handler->skip)
			add_word(ret, handler->options[i], &suitable);
	}
	ss_buffer_printf(ret, " %%P %%I %%s %%t %%d %%F");
	if (ret->failed)
		return ss_error_no_memory();
	if (!suitable || strpbrk(program, " %\n"))
		return ss_error_new(
			SS_ERROR_INVALID,
			"core_pattern allows neither spaces nor %% in the path "
			"of the program and in options");
	if (ret->size < PATTERN_MAX)
		return NULL;
	return ss_error_with_remedy(
		ss_error_new(SS_ERROR_INVALID,
			     "core_pattern would be longer than %d bytes",
			     PATTERN_MAX - 1),
		"install the program at a shorter path, such as /usr/bin/stacksnap");
}

static bool is_ours(const char *pattern)
{
	const char *space = strchr(pattern, ' ');
	static const char ours[] = " core --handler ";

	return *pattern == '|' && space && strncmp(space, ours, strlen(ours)) == 0;
}

static struct ss_error *save(const char *pattern)
{
	_cleanup_free_ char *limit = NULL;
	_cleanup_free_ char *lines = NULL;
	struct ss_error *error = read_line(limit_file, &limit);

	if (error)
		return error;
	if (asprintf(&lines, "%s\n%s\n", pattern, limit) < 0)
		return ss_error_no_memory();
	return write_text(saved_file, lines, O_CREAT | O_TRUNC | O_NOFOLLOW);
}

static struct ss_error *install(const struct ss_core_handler *handler)
{
	_cleanup_free_ char *before = NULL;
	_cleanup_buffer_ struct ss_buffer pattern = {};
	_cleanup_(ss_core_reports_close) struct ss_core_reports reports =
		SS_CORE_REPORTS_NONE;
	char limit[16];

	struct ss_error *error = make_pattern(handler, &pattern);
	if (!error)
		error = ss_core_reports_open(handler->directory, &reports);
	if (!error)
		error = read_line(pattern_file, &before);
	if (!error && !is_ours(before))
		error = save(before);
	if (error)
		return error;
	/* The kernel then waits for the handler also after it has written everything. */
	(void)snprintf(limit, sizeof(limit), "%d", LIMIT); /* always fits */
	error = set(limit_file, limit);
	return error ? error : set(pattern_file, pattern.bytes);
}

static struct ss_error *uninstall(void)
{
	_cleanup_free_ char *now = NULL;
	_cleanup_buffer_ struct ss_buffer saved = {};
	struct ss_error *error = read_line(pattern_file, &now);

	if (!error && !is_ours(now))
		error = ss_error_new(SS_ERROR_INVALID,
				     "stacksnap is not the handler: core_pattern is '%s'",
				     now);
	if (error)
		return error;
	int errnum = -ss_io_read_path(AT_FDCWD, saved_file, SMALL, &saved);
	if (errnum)
		return ss_error_with_remedy(
			ss_error_new_errno(errnum, "cannot read %s, the previous handler",
					   saved_file),
			"without a handler, core_pattern is 'core' and core_pipe_limit "
			"is "
			"0");
	char *limit = strchr(saved.bytes, '\n');
	if (limit)
		*limit++ = '\0';
	error = set(pattern_file, saved.bytes);
	if (!error && limit && *limit)
		error = set(limit_file, strsep(&limit, "\n"));
	if (!error)
		(void)unlink(saved_file); /* the next --install replaces it */
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

int ss_core_handler_uninstall(void)
{
	return end(uninstall());
}
