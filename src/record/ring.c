#include "record/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "record/format.h"

enum { COPY_STEP = 1 << 20, FILE_MODE = 0600 };

void ss_ring_deinit(struct ss_ring *ring)
{
	close_cleanup(&ring->fd);
	close_cleanup(&ring->directory);
	ring->fd = ring->directory = -1;
	free(ring->name);
	ring->name = NULL;
	ss_vector_free(&ring->segments);
}

struct ss_error *ss_ring_append(struct ss_ring *ring, const struct ss_bytes *bytes)
{
	if (ring->broken)
		return ss_error_new(SS_ERROR_SYSTEM, "the recording could not be written "
						     "to before");
	int error = ss_io_write_all(ring->fd, bytes->items, bytes->count);
	if (!error) {
		ring->size += bytes->count;
		return NULL;
	}
	ring->broken = true;
	/* A pipe cannot be cut; a reader finds the last whole chunk by itself, too. */
	(void)!ftruncate(ring->fd, (off_t)ring->size);
	return ss_error_new_errno(-error, "writing the recording");
}

/* How many segments at the begin are older than what is to be kept. */
static size_t count_old(const struct ss_ring *ring, uint64_t monotonic_ns)
{
	size_t old = 0;

	/* One is old if the next one began early enough. */
	while (old + 1 < ring->segments.count &&
	       ring->segments.items[old + 1].begin_ns + ring->keep_ns <= monotonic_ns)
		old++;
	return old;
}

/* Copies a part of the file to the end of another. */
static bool copy_part(int from, uint64_t offset, uint64_t size, int to)
{
	_cleanup_free_ uint8_t *bytes = malloc(COPY_STEP);

	while (bytes && size > 0) {
		size_t step = (size_t)SS_MIN(size, (uint64_t)COPY_STEP);
		if (ss_io_pread(from, bytes, step, offset) != (ssize_t)step ||
		    ss_io_write_all(to, bytes, step) != 0)
			return false;
		offset += step;
		size -= step;
	}
	return bytes != NULL;
}

/* Makes a file without what lies between the file's header and offset. -1: it could
   not be made, and nothing has changed. */
static int make_shorter(const struct ss_ring *ring, uint64_t offset)
{
	_cleanup_free_ char *other = NULL;

	if (asprintf(&other, "%s.part", ring->name) < 0) {
		other = NULL;
		return -1;
	}
	_cleanup_close_ int fd =
		openat(ring->directory, other,
		       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	if (fd < 0)
		return -1;
	if (copy_part(ring->fd, 0, SS_FILE_HEADER_SIZE, fd) &&
	    copy_part(ring->fd, offset, ring->size - offset, fd) &&
	    renameat(ring->directory, other, ring->directory, ring->name) == 0)
		return take_fd(fd);
	(void)unlinkat(ring->directory, other, 0); /* it is ours: just created */
	return -1;
}

static void drop(struct ss_ring *ring, size_t old)
{
	uint64_t offset = ring->segments.items[old].offset;
	int fd = make_shorter(ring, offset);

	if (fd < 0)
		return;
	close_cleanup(&ring->fd);
	ring->fd = fd;
	uint64_t gone = offset - SS_FILE_HEADER_SIZE;
	ring->size -= gone;
	ring->segments.count -= old;
	memmove(ring->segments.items, ring->segments.items + old,
		ring->segments.count * sizeof(*ring->segments.items));
	for (size_t i = 0; i < ring->segments.count; i++)
		ring->segments.items[i].offset -= gone;
}

struct ss_error *ss_ring_begin_segment(struct ss_ring *ring, uint64_t monotonic_ns)
{
	if (!ring->name)
		return NULL;
	struct ss_segment_place *place = ss_vector_push(&ring->segments);
	if (!place)
		return ss_error_no_memory();
	*place = (struct ss_segment_place){ .offset = ring->size,
					    .begin_ns = monotonic_ns };
	size_t old = count_old(ring, monotonic_ns);
	if (old > 0)
		drop(ring, old);
	return NULL;
}
