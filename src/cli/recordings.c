#include "cli/report.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/arguments.h"
#include "cli/failure.h"
#include "stacksnap.h"
#include "data/recording.h"

enum { FIRST_FD = STDERR_FILENO + 1, COPY_SIZE = 1 << 16 };

void ss_report_files_deinit(struct ss_report_files *files)
{
	for (size_t i = 0; i < files->items.count; i++) {
		free(files->items.items[i].path);
		close_cleanup(&files->items.items[i].fd);
	}
	ss_vector_free(&files->items);
	if (files->has_copy)
		close_cleanup(&files->copy);
	if (files->has_copy)
		close_cleanup(&files->copy_writer);
}

int ss_report_files_duplicate(const struct ss_report_files *files,
			      const struct ss_report_file *file)
{
	return fcntl(file->fd < 0 ? files->copy : file->fd, F_DUPFD_CLOEXEC, FIRST_FD);
}

static struct ss_error *push(struct ss_report_files *files, const char *path, int fd,
			     uint64_t offset, uint64_t size)
{
	_cleanup_close_ int owned = fd;
	_cleanup_free_ char *name = strdup(path);
	struct ss_report_file *file = name ? ss_vector_push(&files->items) : NULL;

	if (!file)
		return ss_error_no_memory();
	*file = (struct ss_report_file){ .path = take_ptr(name),
					 .fd = take_fd(owned),
					 .offset = offset,
					 .size = size,
					 .set = files->set };
	return NULL;
}

/* The copy ----------------------------------------------------------------- */

static const char *temporary_directory(void)
{
	const char *directory = secure_getenv("TMPDIR");

	return directory && *directory ? directory : "/tmp";
}

static struct ss_error *create_copy(struct ss_report_files *files)
{
	if (files->has_copy)
		return NULL;
	_cleanup_close_ int writer =
		open(temporary_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (writer < 0)
		writer = memfd_create("recordings", MFD_CLOEXEC);
	_cleanup_close_ int reader = writer < 0 ? -1 : ss_io_reopen(writer);
	int errnum = errno;
	if (reader < 0)
		return ss_error_new_errno(errnum, "cannot create a temporary file");
	files->copy = take_fd(reader);
	files->copy_writer = take_fd(writer);
	files->has_copy = true;
	return NULL;
}

static struct ss_error *copy_bytes(struct ss_report_files *files, int fd,
				   const char *path)
{
	char bytes[COPY_SIZE];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof(bytes))) != 0) {
		int errnum = errno;
		if (n < 0 && errnum == EINTR)
			continue;
		if (n < 0)
			return ss_error_new_errno(errnum, "cannot read '%s'", path);
		int status = ss_io_write_all(files->copy_writer, bytes, (size_t)n);
		if (status < 0)
			return ss_error_with_remedy(
				ss_error_new_errno(-status,
						   "copying '%s' to a temporary file",
						   path),
				"set TMPDIR to a directory with more space");
		files->copy_size += (uint64_t)n;
	}
	return NULL;
}

/* Each copy is a file of its own: what is left of one that failed is in none. */
static struct ss_error *add_copy(struct ss_report_files *files, int fd, const char *path)
{
	struct ss_error *error = create_copy(files);
	uint64_t begin = files->copy_size;

	if (!error)
		error = copy_bytes(files, fd, path);
	return error ? error : push(files, path, -1, begin, files->copy_size - begin);
}

/* Files ------------------------------------------------------------------- */

/* Half of the descriptors are for modules and their debug files. */
static bool has_descriptors(int fd)
{
	struct rlimit limit = {};

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	       (uint64_t)fd < (uint64_t)limit.rlim_cur / 2;
}

struct ss_error *ss_report_files_add(struct ss_report_files *files, int fd,
				     const char *name)
{
	_cleanup_close_ int owned = fd;
	struct stat status;

	if (owned < 0 || (fstat(owned, &status) == 0 && !S_ISREG(status.st_mode)))
		return ss_error_new(SS_ERROR_INVALID,
				    "'%s' is %s: a recording must be a regular file",
				    name, owned < 0 ? "not open" : "a pipe or device");
	if (!has_descriptors(owned))
		return add_copy(files, owned, name);
	return push(files, name, take_fd(owned), 0,
		    status.st_size > 0 ? (uint64_t)status.st_size : 0);
}

static struct ss_error *open_file(struct ss_report_files *files, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int errnum = errno;

	if (fd < 0)
		return ss_argument_open_error(errnum, path, "record ");
	return ss_report_files_add(files, fd, path);
}

/* Directories ---------------------------------------------------------------- */

static int compare_names(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Other files may lie beside the recordings. */
static struct ss_error *add_if_recording(struct ss_report_files *files, const char *path)
{
	_cleanup_close_ int fd =
		open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	int errnum = errno;

	if (fd < 0)
		return ss_error_new_errno(errnum, "cannot open '%s'", path);
	return ss_recording_is(fd) ? ss_report_files_add(files, take_fd(fd), path) : NULL;
}

static struct ss_error *visit(struct ss_report_files *files, FTS *tree, FTSENT *entry)
{
	switch (entry->fts_info) {
	case FTS_D: /* hidden: not complete, or not meant */
		if (entry->fts_level > 0 && entry->fts_name[0] == '.')
			(void)fts_set(tree, entry, FTS_SKIP);
		return NULL;
	case FTS_F:
		return entry->fts_name[0] == '.' ?
			       NULL :
			       add_if_recording(files, entry->fts_path);
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return ss_error_new_errno(entry->fts_errno, "cannot open '%s'",
					  entry->fts_path);
	default:
		return NULL;
	}
}

static struct ss_error *open_directory(struct ss_report_files *files, const char *path)
{
	_cleanup_free_ char *name = strdup(path);
	char *const names[] = { name, NULL };
	FTS *tree = name ? fts_open(names, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR,
				    compare_names) :
			   NULL;
	FTSENT *entry;
	bool memory = tree;

	while (memory && (entry = fts_read(tree))) {
		_cleanup_error_ struct ss_error *error = visit(files, tree, entry);
		if (!error)
			continue;
		memory = ss_error_code(error) != SS_ERROR_NO_MEMORY;
		files->missing = true;
		ss_failure_print(error);
	}
	if (tree)
		(void)fts_close(tree);
	return memory ? NULL : ss_error_no_memory();
}

struct ss_error *ss_report_files_open(struct ss_report_files *files, const char *path)
{
	struct stat status;

	if (strcmp(path, "-") == 0) {
		bool is_file = fstat(STDIN_FILENO, &status) == 0 &&
			       S_ISREG(status.st_mode) &&
			       lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
		return is_file ? ss_report_files_add(
					 files,
					 fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_FD),
					 "standard input") :
				 add_copy(files, STDIN_FILENO, "standard input");
	}
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return open_directory(files, path);
	return open_file(files, path);
}
