/*
 * stacksnap core --install and --uninstall: the kernel's crash handler (core(5)), and the file
 * that sets it again at each boot (sysctl.d(5)).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/failure.h"
#include "crash/cli/core.h"

/* The kernel's limit (CORENAME_MAX_SIZE), with the NUL. */
enum { PATTERN_MAX = 128, LIMIT = 16, SMALL = 1 << 16 };

static const char pattern_file[] = "/proc/sys/kernel/core_pattern";
static const char limit_file[] = "/proc/sys/kernel/core_pipe_limit";

/* Files of all directories are read in the order of their names: 50-coredump.conf of
   systemd-coredump is earlier, and an administrator's 99-local.conf later. */
#define BOOT_DIRECTORY "/etc/sysctl.d"
#define BOOT_NAME "60-stacksnap.conf"
static const char boot_file[] = BOOT_DIRECTORY "/" BOOT_NAME;

/* What was there before is in the same file. */
static const char pattern_before[] = "# core_pattern before: ";
static const char limit_before[] = "# core_pipe_limit before: ";

struct settings {
	char *pattern;
	char *limit;
};

static void settings_deinit(struct settings *settings)
{
	free(settings->pattern);
	free(settings->limit);
}

static struct ss_error *read_line(const char *path, char **ret)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int error = ss_io_read_path(AT_FDCWD, path, SMALL, &text);

	if (error)
		return ss_error_new_errno(-error, "cannot read %s", path);
	*ret = strndup(text.bytes, strcspn(text.bytes, "\n"));
	return *ret ? NULL : ss_error_no_memory();
}

static struct ss_error *read_now(struct settings *ret)
{
	struct ss_error *error = read_line(pattern_file, &ret->pattern);

	return error ? error : read_line(limit_file, &ret->limit);
}

/* *value: the rest of the line of text that begins with key. False without memory. */
static bool find_line(const char *text, const char *key, char **value)
{
	for (const char *line = text; *line;
	     line += strcspn(line, "\n"), line += !!*line) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		line += strlen(key);
		free(*value);
		*value = strndup(line, strcspn(line, "\n"));
		return *value;
	}
	return true;
}

/* What the file says was there before; for what it does not, the kernel's defaults. *found: there
   is a file. */
static struct ss_error *read_before(struct settings *ret, bool *found)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	int error = ss_io_read_path(AT_FDCWD, boot_file, SMALL, &text);

	*found = !error;
	if (error && error != -ENOENT)
		return ss_error_new_errno(-error, "cannot read %s", boot_file);
	ret->pattern = strdup("core");
	ret->limit = strdup("0");
	if (!ret->pattern || !ret->limit)
		return ss_error_no_memory();
	return error || (find_line(text.bytes, pattern_before, &ret->pattern) &&
			 find_line(text.bytes, limit_before, &ret->limit)) ?
		       NULL :
		       ss_error_no_memory();
}

static struct ss_error *write_text(const char *path, const char *text, int flags)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0644);
	int errnum = errno;

	if (fd < 0)
		return ss_error_with_remedy(
			ss_error_new_errno(errnum, "cannot write %s", path),
			geteuid() ? "run it as root: sudo stacksnap core ..." :
				    "--dry-run shows the lines to write by hand");
	int error = ss_io_write_all(fd, text, strlen(text));
	return error ? ss_error_new_errno(-error, "cannot write %s", path) : NULL;
}

/* Shows what is done before it is done. */
static struct ss_error *set(const struct ss_core_handler *handler, const char *path,
			    const char *now, const char *then)
{
	_cleanup_free_ char *text = NULL;

	if (asprintf(&text, "%s\n", then) < 0) /* without a newline, none can be empty */
		return ss_error_no_memory();
	(void)printf("%s:\n  now:  %s\n  then: %s\n", path, now, then);
	(void)fflush(stdout);
	return handler->dry_run ? NULL : write_text(path, text, 0);
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
		if (i != handler->action_at &&
		    !(handler->dry_run && i == handler->dry_run_at))
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

/* Whether a file of sysctl.d sets core_pattern. */
static bool sets_pattern(const char *text)
{
	for (const char *line = text; *line;
	     line += strcspn(line, "\n"), line += !!*line) {
		const char *key = line + strspn(line, " \t-");

		if ((strncmp(key, "kernel.core_pattern", 19) == 0 ||
		     strncmp(key, "kernel/core_pattern", 19) == 0) &&
		    key[19 + strspn(key + 19, " \t")] == '=')
			return true;
	}
	return false;
}

/* A file of one directory hides those of the same name in the directories after it. */
static bool is_hidden(const char *const *directories, size_t index, const char *name)
{
	for (size_t i = 0; i < index; i++) {
		char path[PATH_MAX];
		(void)snprintf(path, sizeof(path), "%s/%s", directories[i],
			       name); /* fits */
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

/* At boot, a file with a later name has the last word. */
static void warn_of_later_files(void)
{
	static const char *const directories[] = { BOOT_DIRECTORY, "/run/sysctl.d",
						   "/usr/local/lib/sysctl.d",
						   "/usr/lib/sysctl.d" };

	for (size_t i = 0; i < SS_ARRAY_SIZE(directories); i++) {
		DIR *directory = ss_io_open_directory(AT_FDCWD, directories[i]);

		for (const struct dirent *entry;
		     directory && (entry = readdir(directory));) {
			_cleanup_buffer_ struct ss_buffer text = {};
			const char *dot = strrchr(entry->d_name, '.');

			if (dot && strcmp(dot, ".conf") == 0 &&
			    strcmp(entry->d_name, BOOT_NAME) > 0 &&
			    !is_hidden(directories, i, entry->d_name) &&
			    !ss_io_read_path(dirfd(directory), entry->d_name, SMALL,
					     &text) &&
			    sets_pattern(text.bytes))
				ss_failure_warn("%s/%s sets core_pattern too, and has "
						"the last word at the next boot",
						directories[i], entry->d_name);
		}
		if (directory)
			(void)closedir(directory);
	}
}

/* Replaces the file at once: what it remembers is not lost if the disk is full. */
static struct ss_error *replace_boot_file(const char *text)
{
	static const char other[] = BOOT_DIRECTORY "/" BOOT_NAME ".new";
	struct ss_error *error = write_text(other, text, O_CREAT | O_TRUNC | O_NOFOLLOW);

	if (!error && rename(other, boot_file) != 0)
		error = ss_error_new_errno(errno, "cannot write %s", boot_file);
	if (error)
		(void)unlink(other); /* it may not exist */
	return error;
}

static struct ss_error *write_boot_file(const struct ss_core_handler *handler,
					const struct settings *before,
					const char *pattern)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	(void)printf("%s:\n  sets core_pattern and core_pipe_limit at each boot\n",
		     boot_file);
	(void)fflush(stdout);
	if (handler->dry_run)
		return NULL;
	ss_buffer_printf(&text,
			 "# stacksnap core --install has made this file; "
			 "--uninstall removes it.\n%s%s\n%s%s\n"
			 "kernel.core_pattern=%s\nkernel.core_pipe_limit=%d\n",
			 pattern_before, before->pattern, limit_before, before->limit,
			 pattern, LIMIT);
	if (text.failed)
		return ss_error_no_memory();
	/* If it cannot be made, the next call says so. */
	(void)mkdir(BOOT_DIRECTORY, 0755);
	return replace_boot_file(text.bytes);
}

/* What the file was before, if the settings could not be made. text: NULL: there was none. */
static void restore_boot_file(const struct ss_core_handler *handler, const char *text)
{
	if (handler->dry_run)
		return;
	if (text)
		ss_error_free(replace_boot_file(text)); /* the first error is told */
	else
		(void)unlink(boot_file); /* likewise */
}

/* With ptrace_scope 3 a crash takes longer. */
static void warn_of_scope(void)
{
	_cleanup_free_ char *scope = NULL;
	_cleanup_error_ struct ss_error *none =
		read_line("/proc/sys/kernel/yama/ptrace_scope", &scope);

	if (!none && strcmp(scope, "3") == 0)
		ss_failure_warn(
			"kernel.yama.ptrace_scope is 3: nobody may read the "
			"memory of a process that crashes, so the handler reads its "
			"whole dump, and large processes take longer to end");
}

struct ss_error *ss_core_handler_install(const struct ss_core_handler *handler)
{
	__attribute__((cleanup(settings_deinit))) struct settings now = {};
	__attribute__((cleanup(settings_deinit))) struct settings before = {};
	_cleanup_buffer_ struct ss_buffer pattern = {};
	__attribute__((cleanup(ss_core_reports_close))) struct ss_core_reports reports =
		SS_CORE_REPORTS_NONE;
	_cleanup_buffer_ struct ss_buffer old = {};
	char limit[16];
	bool found = false;

	struct ss_error *error = make_pattern(handler, &pattern);
	if (!error && !handler->dry_run)
		error = ss_core_reports_open(handler->directory, &reports);
	if (!error)
		error = read_now(&now);
	if (!error && is_ours(now.pattern))
		error = read_before(&before, &found);
	bool is_old = ss_io_read_path(AT_FDCWD, boot_file, SMALL, &old) == 0;
	if (!error)
		error = write_boot_file(handler, is_ours(now.pattern) ? &before : &now,
					pattern.bytes);
	if (error)
		return error;
	/* The kernel then waits for the handler also after it has written everything. */
	(void)snprintf(limit, sizeof(limit), "%d", LIMIT); /* always fits */
	error = set(handler, limit_file, now.limit, limit);
	if (!error)
		error = set(handler, pattern_file, now.pattern, pattern.bytes);
	if (error)
		restore_boot_file(handler, is_old ? old.bytes : NULL);
	if (!error)
		warn_of_later_files();
	if (!error)
		warn_of_scope();
	return error;
}

struct ss_error *ss_core_handler_uninstall(const struct ss_core_handler *handler)
{
	__attribute__((cleanup(settings_deinit))) struct settings now = {};
	__attribute__((cleanup(settings_deinit))) struct settings before = {};
	bool found = false;
	struct ss_error *error = read_now(&now);

	if (!error)
		error = read_before(&before, &found);
	if (error)
		return error;
	bool ours = is_ours(now.pattern);
	if (!ours && !found)
		return ss_error_new(SS_ERROR_INVALID,
				    "stacksnap is not the handler: core_pattern is '%s'",
				    now.pattern);
	if (!found)
		ss_failure_warn("there is no %s, which says what was there before: the "
				"kernel's defaults are set",
				boot_file);
	if (ours)
		error = set(handler, pattern_file, now.pattern, before.pattern);
	else
		(void)printf(
			"%s:\n  now:  %s\n  stays: another program has set it since\n",
			pattern_file, now.pattern);
	if (ours && !error)
		error = set(handler, limit_file, now.limit, before.limit);
	if (error || !found)
		return error;
	(void)printf("%s:\n  now:  sets core_pattern and core_pipe_limit at each boot\n"
		     "  then: removed\n",
		     boot_file);
	(void)fflush(stdout);
	if (!handler->dry_run && unlink(boot_file) && errno != ENOENT)
		return ss_error_new_errno(errno, "cannot remove %s", boot_file);
	return NULL;
}
