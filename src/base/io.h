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

#endif
