/*
 * Reads and writes that are complete, bounded in size, and restarted after EINTR.
 */
#ifndef SS_BASE_IO_H
#define SS_BASE_IO_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buffer.h"

/* Replaces the content of text with the bytes of fd from its current position to its
   end, at most max. 0, or a negative errno (-EFBIG: there are more). */
int ss_io_read_all(int fd, size_t max, struct ss_buffer *text);

/* The same for the file at path below dirfd. */
int ss_io_read_path(int dirfd, const char *path, size_t max, struct ss_buffer *text);

/*
 * The same with a single read(): for procfs files that return their whole content at
 * once, where the second read(), which finds the end, would cost as much as the first.
 */
int ss_io_read_record(int dirfd, const char *path, size_t max, struct ss_buffer *text);

/* Opens for reading the regular file that fd, which may be opened with O_PATH, refers to. -1,
   with errno (EINVAL: it is something else; opening a device or a FIFO has side effects). */
int ss_io_reopen(int fd);

/* A file in memory, or -1 and errno. Where memfd_create(2) is not permitted it is a file in /tmp
   without a name. */
int ss_io_create_unnamed(void);

/* Descriptors below this number may stay open for a long time: half of all are left for everything
   else. 0: the limit is unknown. */
int ss_io_keep_max(void);

bool ss_io_may_keep(int fd);

/* Whether so many more descriptors can be opened. */
bool ss_io_can_open(unsigned count);

/* Opens a directory; NULL, with errno, if that fails. Closed by closedir(). */
DIR *ss_io_open_directory(int dirfd, const char *path);

/* Repeats pread() up to size bytes, the end of the file or an error. The number of bytes
   read, or a negative errno if an error came before the first one. */
ssize_t ss_io_pread(int fd, void *bytes, size_t size, uint64_t offset);

/* Repeats write() until everything is written. 0, or a negative errno. */
int ss_io_write_all(int fd, const void *bytes, size_t size);

/*
 * A file that appears under its name when it is complete, or not at all: it has no name until
 * then (O_TMPFILE), so nothing is left of it if the program is killed. Some file systems (NFS,
 * FUSE) have no such files. There it has another name meanwhile, "NAME.1234abcd.part".
 */

enum { SS_NEW_FILE_NAME_ROOM = 128 };

struct ss_new_file {
	int fd;				       /* open for reading and writing, or -1 */
	int directory;			       /* the caller's, also name */
	const char *name;		       /* without a slash */
	char temporary[SS_NEW_FILE_NAME_ROOM]; /* its name until then; "": none */
};

/* Creates a file that only its owner can access. Its fd is -1 on failure. 0, or a negative
   errno. */
int ss_new_file_create(int directory, const char *name, struct ss_new_file *ret);

/*
 * Gives it its name. replace: in the place of a file with that name, otherwise -EEXIST if
 * there is one; not for a link to the same file, which another process may have published.
 * 0, or a negative errno.
 */
int ss_new_file_publish(struct ss_new_file *file, bool replace);

/* Whether a file with that name is one that was not complete when its writer was killed, or
   is still being written. */
bool ss_new_file_is_temporary(const char *name);

/* Closes fd. Removes the file unless it was published. */
void ss_new_file_deinit(struct ss_new_file *file);

#endif
