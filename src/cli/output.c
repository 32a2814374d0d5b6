#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/text_stream.h"
#include "report/print.h"

enum { BUFFER_SIZE = 256 << 10 };

struct ss_output {
	FILE *file;
	int stream;	 /* STDOUT_FILENO or STDERR_FILENO, if there is no path */
	char *path;	 /* NULL: the stream */
	char *directory; /* contains path */
	int dirfd;	 /* of directory */
	bool published;	 /* the file has its name; or it is a device */
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
	struct ss_text_stream path;

	if (!ss_text_stream_open(&path))
		return NULL;
	write_path(pattern, pid, path.out);
	return ss_text_stream_close(&path);
}

static struct ss_error *creation_error(int errnum, const char *path)
{
	struct stat st;

	if (errnum == EEXIST && lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID,
				     "'%s' exists, and is not a regular file", path),
			S_ISDIR(st.st_mode) ? "name a file in it" :
					      "name a new file, or redirect standard "
					      "output");
	if (errnum == EEXIST)
		return ss_error_with_remedy(
			ss_error_new(SS_ERROR_INVALID, "'%s' already exists", path),
			"remove it, or name another file: %%p is the pid, %%t the time");
	return ss_error_new_errno(errnum, "cannot create '%s'", path);
}

/* The part after the last slash: empty if the path ends with one. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
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
	const char *name = file_name(output->path);
	struct stat st;

	if (*name == '\0' || fstatat(output->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return EEXIST;
	return errno == ENOENT ? 0 : errno;
}

/* Opens a device such as /dev/null, which only root can make. False: it is none. */
static bool open_device(struct ss_output *output)
{
	const char *name = file_name(output->path);
	struct stat st;

	if (fstatat(output->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISCHR(st.st_mode))
		return false;
	output->new_file.fd =
		openat(output->dirfd, name, O_WRONLY | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
	output->published = output->new_file.fd >= 0;
	return output->published;
}

static struct ss_error *create_file(struct ss_output *output)
{
	if (output->dirfd < 0)
		output->dirfd = open_parent(output);
	if (output->dirfd >= 0 && open_device(output))
		return open_stream(output, output->new_file.fd);
	int errnum = output->dirfd < 0 ? errno : check_absent(output);
	if (!errnum)
		errnum = -ss_new_file_create(output->dirfd, file_name(output->path),
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
	return output->path ? file_name(output->path) : NULL;
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

/* LOOKAHEAD: the size of the longest character or sequence. */
enum { CHUNK = 64 << 10, LOOKAHEAD = 16 };

/* Counts leading bytes that are printable ASCII or newlines: the common case. */
static size_t plain_size(const char *text)
{
	const char *at = text;

	while ((*at >= 0x20 && *at < 0x7f) || *at == '\n')
		at++;
	return (size_t)(at - text);
}

/* ESC [ NUMBERS m changes colours and nothing else (ECMA-48, SGR). */
static size_t color_size(const char *text)
{
	if (text[0] != '\033' || text[1] != '[')
		return 0;
	size_t digits = strspn(text + 2, "0123456789;");
	return text[2 + digits] == 'm' && digits + 3 <= LOOKAHEAD ? digits + 3 : 0;
}

/* Writes one character or one sequence. Returns its size. */
static size_t write_one(const char *text, bool color, FILE *out)
{
	size_t size = *text == '\t' ? 1 : ss_escape_safe_size(text);

	if (!size && color)
		size = color_size(text);
	if (size)
		(void)fwrite_unlocked(text, 1, size,
				      out); /* the caller checks ferror() */
	else
		ss_escape_write_hex(text, 1, out);
	return size ? size : 1;
}

/* Writes text until fewer than keep bytes are left. Returns the number of bytes consumed.
   text[size] is NUL. */
static size_t write_part(const char *text, size_t size, size_t keep, bool color,
			 FILE *out)
{
	size_t at = 0;

	while (at + keep < size) {
		size_t plain = plain_size(text + at);
		(void)fwrite_unlocked(text + at, 1, plain, out); /* as above */
		at += plain;
		if (at + keep < size)
			at += write_one(text + at, color, out);
	}
	return at;
}

struct ss_error *ss_escaped_copy(int fd, bool color, FILE *out)
{
	_cleanup_free_ char *text = malloc(CHUNK + 1);
	uint64_t offset = 0;
	size_t left = 0; /* from the previous chunk */
	ssize_t count;

	if (!text)
		return ss_error_no_memory();
	do {
		count = ss_io_pread(fd, text + left, CHUNK - left, offset);
		if (count < 0)
			return ss_error_new_errno((int)-count, "cannot read the result");
		size_t size = left + (size_t)count;
		text[size] = '\0';
		offset += (uint64_t)count;
		size_t done =
			write_part(text, size, count > 0 ? LOOKAHEAD : 0, color, out);
		left = size - done;
		memmove(text, text + done, left);
	} while (count > 0);
	return NULL;
}

struct ss_error *ss_plain_copy(int fd, FILE *out)
{
	_cleanup_free_ char *bytes = malloc(CHUNK);
	uint64_t offset = 0;
	ssize_t count;

	if (!bytes)
		return ss_error_no_memory();
	while ((count = ss_io_pread(fd, bytes, CHUNK, offset)) > 0) {
		(void)fwrite_unlocked(bytes, 1, (size_t)count, out); /* as above */
		offset += (uint64_t)count;
	}
	return count < 0 ? ss_error_new_errno((int)-count, "cannot read the result") :
			   NULL;
}
