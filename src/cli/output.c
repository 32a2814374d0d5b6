#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/new_file.h"

enum { BUFFER_SIZE = 256 << 10 };

struct ss_output {
	FILE *file;
	int stream;	 /* STDOUT_FILENO or STDERR_FILENO, if there is no path */
	char *path;	 /* NULL: the stream */
	char *directory; /* contains path */
	int dirfd;	 /* of directory */
	bool published;	 /* the file has its name */
	struct ss_new_file new_file;
	char *buffer; /* of file, freed after it */
};

bool ss_output_is_stdout(const char *pattern)
{
	return !pattern || strcmp(pattern, "-") == 0;
}

bool ss_output_is_per_target(const char *pattern)
{
	const char *at = pattern;

	while (at && (at = strchr(at, '%'))) {
		if (at[1] == 'p')
			return true;
		at += at[1] ? 2 : 1;
	}
	return false;
}

struct ss_error *ss_output_check(const char *pattern)
{
	if (*pattern == '\0')
		return ss_error_new(SS_ERROR_INVALID, "--output: the name is empty");
	for (const char *at = strchr(pattern, '%'); at; at = strchr(at + 2, '%')) {
		if (!at[1] || !strchr("pt%", at[1]))
			return ss_error_new(
				SS_ERROR_INVALID,
				"--output: unknown placeholder '%%%.1s'; known: "
				"%%p (pid), %%t (time) and %%%%",
				at + 1);
	}
	return NULL;
}

static void write_time(FILE *out)
{
	time_t now = time(NULL);
	struct tm tm = {};
	char text[32] = "";

	if (localtime_r(&now, &tm) &&
	    strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &tm) > 0)
		(void)fputs(text, out);
}

static void write_path(const char *pattern, pid_t pid, FILE *out)
{
	for (const char *at = pattern; *at; at++) {
		if (*at != '%') {
			(void)fputc(*at, out);
			continue;
		}
		at++;
		if (*at == 'p')
			(void)fprintf(out, "%d", pid);
		else if (*at == 't')
			write_time(out);
		else
			(void)fputc('%', out);
	}
}

char *ss_output_expand(const char *pattern, pid_t pid)
{
	char *path = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&path, &size);

	if (!out)
		return NULL;
	write_path(pattern, pid, out);
	if (fclose(out) == 0)
		return path;
	free(path);
	return NULL;
}

static struct ss_error *creation_error(int errnum, const char *path)
{
	if (errnum == EEXIST)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID, "'%s' already exists", path),
			"remove it, or name another file: %%p is the pid, %%t the time");
	return ss_error_new_errno(errnum, "cannot create '%s'", path);
}

static int open_parent(struct ss_output *output)
{
	const char *slash = strrchr(output->path, '/');

	output->directory =
		slash ? strndup(output->path, (size_t)(slash - output->path) + 1) :
			strdup(".");
	return output->directory ?
		       open(output->directory, O_PATH | O_DIRECTORY | O_CLOEXEC) :
		       -1;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const char *stream_name(const struct ss_output *output)
{
	return output->stream == STDERR_FILENO ? "standard error" : "standard output";
}

static struct ss_error *open_stream(struct ss_output *output, int stream)
{
	_cleanup_close_ int fd = fcntl(stream, F_DUPFD_CLOEXEC, 3);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "%s", stream_name(output));
	output->file = fdopen(fd, "w");
	errnum = errno;
	if (!output->file && errnum == EINVAL) /* opened by ss_streams_prepare() */
		return ss_error_new(SS_ERROR_INVALID, "%s is closed, or read-only",
				    stream_name(output));
	if (!output->file)
		return ss_error_no_memory();
	(void)take_fd(fd); /* owned by the FILE */
	return NULL;
}

/* Reports an existing file before the work begins. 0, or an errno. */
static int check_absent(const struct ss_output *output)
{
	const char *name = last_part(output->path);
	struct stat st;

	if (*name == '\0')
		return EISDIR;
	if (fstatat(output->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return EEXIST;
	return errno == ENOENT ? 0 : errno;
}

static struct ss_error *create_file(struct ss_output *output)
{
	if (output->dirfd < 0)
		output->dirfd = open_parent(output);
	int errnum = output->dirfd < 0 ? errno : check_absent(output);
	if (!errnum)
		errnum = -ss_new_file_create(output->dirfd, last_part(output->path),
					     &output->new_file);
	return errnum ? creation_error(errnum, output->path) :
			open_stream(output, output->new_file.fd);
}

/* path: NULL for the stream; directory: -1 for that of path. The output owns both. */
static struct ss_error *open_output(int stream, char *path, int directory,
				    struct ss_output **ret)
{
	_cleanup_free_ char *owned_path = path;
	_cleanup_close_ int owned_directory = directory;
	_cleanup_(ss_output_cleanup) struct ss_output *output =
		calloc(1, sizeof(*output));

	if (!output)
		return ss_error_no_memory();
	output->stream = stream;
	output->path = take_ptr(owned_path);
	output->dirfd = take_fd(owned_directory);
	output->new_file.fd = -1;
	output->buffer = malloc(BUFFER_SIZE);
	if (!output->buffer)
		return ss_error_no_memory();
	struct ss_error *error = path ? create_file(output) : open_stream(output, stream);
	if (error)
		return error;
	(void)setvbuf(output->file, output->buffer, _IOFBF,
		      BUFFER_SIZE); /* best effort */
	*ret = take_ptr(output);
	return NULL;
}

struct ss_error *ss_output_open(const char *pattern, pid_t pid, struct ss_output **ret)
{
	bool is_stdout = ss_output_is_stdout(pattern);
	char *path = is_stdout ? NULL : ss_output_expand(pattern, pid);

	return path || is_stdout ? open_output(STDOUT_FILENO, path, -1, ret) :
				   ss_error_no_memory();
}

struct ss_error *ss_output_open_at(int directory, const char *name,
				   struct ss_output **ret)
{
	int fd = fcntl(directory, F_DUPFD_CLOEXEC, 3);
	int errnum = errno;
	char *path = fd < 0 ? NULL : strdup(name);

	if (fd < 0)
		return ss_error_new_errno(errnum, "opening the output");
	if (path)
		return open_output(STDOUT_FILENO, path, fd, ret);
	close_cleanup(&fd);
	return ss_error_no_memory();
}

struct ss_error *ss_output_open_stderr(struct ss_output **ret)
{
	return open_output(STDERR_FILENO, NULL, -1, ret);
}

FILE *ss_output_file(struct ss_output *output)
{
	return output->file;
}

struct ss_error *ss_output_duplicate(const struct ss_output *output, int *ret)
{
	int fd = fcntl(fileno(output->file), F_DUPFD_CLOEXEC, 3);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "opening the output");
	*ret = fd;
	return NULL;
}

const char *ss_output_directory(const struct ss_output *output)
{
	return output->directory;
}

const char *ss_output_name(const struct ss_output *output)
{
	return output->path ? last_part(output->path) : NULL;
}

const char *ss_output_path(const struct ss_output *output)
{
	return output->path;
}

struct ss_error *ss_output_publish(struct ss_output *output)
{
	if (!output->path || output->published)
		return NULL;
	int error = ss_new_file_publish(&output->new_file, false);
	if (error)
		return creation_error(-error, output->path);
	output->published = true;
	return NULL;
}

bool ss_output_wants_color(const char *pattern)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return ss_output_is_stdout(pattern) && isatty(STDOUT_FILENO) == 1 &&
	       !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

struct ss_error *ss_output_flush(struct ss_output *output)
{
	bool failed = ferror(output->file) != 0;
	int flushed = fflush(output->file);
	int errnum = errno;

	if (!failed && flushed == 0)
		return ss_output_publish(output);
	clearerr(output->file);
	return ss_error_new_errno(flushed ? errnum : EIO, "cannot write to %s",
				  output->path ? output->path : stream_name(output));
}

void ss_output_close(struct ss_output *output)
{
	if (!output)
		return;
	ss_new_file_deinit(&output->new_file);
	if (output->file)
		(void)fclose(output->file); /* ss_output_flush() has reported failures */
	if (output->dirfd >= 0)
		(void)close(output->dirfd); /* nothing was written through it */
	free(output->buffer);
	free(output->directory);
	free(output->path);
	free(output);
}
