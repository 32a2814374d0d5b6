/*
 * Checked input: whole reads, bounded in size, EINTR handled.
 */
#ifndef SS_BASE_IO_H
#define SS_BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A growing text buffer that can be used again: bytes[size] is always '\0'. */
struct ss_text {
	char *bytes;
	size_t size;
	size_t capacity;
};

void ss_text_free(struct ss_text *text);

/* Reads fd from its current position to its end into text (replacing what is in
   it), max bytes at most. 0, or a negative errno (-EFBIG: there was more). */
int ss_io_read_all(int fd, size_t max, struct ss_text *text);

/* Opens path below dirfd (O_RDONLY), reads it whole as above and closes it. */
int ss_io_read_path(int dirfd, const char *path, size_t max, struct ss_text *text);

/*
 * Opens path below dirfd and reads it with a single read() of up to max bytes: for
 * files of procfs that give all they have at once (one record, no sequence), where the
 * second read() that finds the end would cost as much as the first.
 */
int ss_io_read_record(int dirfd, const char *path, size_t max, struct ss_text *text);

/* pread() until size bytes are there, the end, or an error. Bytes read, or -errno if
   there are none. */
ssize_t ss_io_pread(int fd, void *bytes, size_t size, uint64_t offset);

/* write() until all is written. 0 or a negative errno. */
int ss_io_write_all(int fd, const void *bytes, size_t size);

#define _cleanup_text_ __attribute__((cleanup(ss_text_free)))

#endif
