#include "recording/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "base/new_file.h"
#include "recording/format.h"

enum { COPY_STEP = 1 << 20 };

void ss_ring_deinit(struct ss_ring *ring)
{
	close_cleanup(&ring->fd);
	close_cleanup(&ring->directory);
	close_cleanup(&ring->other);
	ring->fd = ring->directory = ring->other = -1;
	free(ring->name);
	ring->name = NULL;
	ss_vector_free(&ring->segments);
}

struct ss_error *ss_ring_append(struct ss_ring *ring, const struct ss_buffer *bytes)
{
	if (ring->broken)
		return ss_error_new(SS_ERROR_SYSTEM,
				    "an earlier write to the recording failed");
	int error = ss_io_write_all(ring->fd, bytes->bytes, bytes->size);
	if (!error) {
		ring->size += bytes->size;
		return NULL;
	}
	ring->broken = true;
	/* Fails for a pipe. Readers stop after the last complete chunk anyway. */
	(void)!ftruncate(ring->fd, (off_t)ring->size);
	return ss_error_new_errno(-error, "writing the recording");
}

/* The number of segments that are too old. */
static size_t count_old(const struct ss_ring *ring, uint64_t monotonic_ns)
{
	size_t old = 0;

	/* A segment is too old if the next one began early enough. */
	while (old + 1 < ring->segments.count &&
	       ring->segments.items[old + 1].begin_ns + ring->keep_ns <= monotonic_ns)
		old++;
	return old;
}

/* Appends a part of the file to another one. 0, or a negative errno. */
static int copy_part(int from, uint64_t offset, uint64_t size, int to)
{
	_cleanup_free_ uint8_t *bytes = malloc(COPY_STEP);

	if (!bytes)
		return -ENOMEM;
	while (size > 0) {
		size_t step = (size_t)SS_MIN(size, (uint64_t)COPY_STEP);
		ssize_t n = ss_io_pread(from, bytes, step, offset);
		if (n != (ssize_t)step)
			return n < 0 ? (int)n : -EIO;
		int error = ss_io_write_all(to, bytes, step);
		if (error)
			return error;
		offset += step;
		size -= step;
	}
	return 0;
}

/* Replaces the file with one without the bytes between its header and offset. Returns a
   negative errno if nothing was changed. */
static int make_shorter(const struct ss_ring *ring, uint64_t offset)
{
	_cleanup_(ss_new_file_deinit) struct ss_new_file file;
	int error = ss_new_file_create(ring->directory, ring->name, &file);

	if (!error)
		error = copy_part(ring->fd, 0, SS_FILE_HEADER_SIZE, file.fd);
	if (!error)
		error = copy_part(ring->fd, offset, ring->size - offset, file.fd);
	if (!error)
		error = ss_new_file_publish(&file, true);
	return error ? error : take_fd(file.fd);
}

static void drop(struct ss_ring *ring, size_t old)
{
	uint64_t offset = ring->segments.items[old].offset;
	int fd = make_shorter(ring, offset);

	ring->undropped = fd < 0 ? -fd : 0;
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

/* Continues in the other file. A reader of that file finds it truncated meanwhile. */
static void alternate(struct ss_ring *ring)
{
	int error = 0;

	if (ftruncate(ring->other, 0) != 0 || lseek(ring->other, 0, SEEK_SET) != 0)
		error = -errno;
	if (!error)
		error = copy_part(ring->fd, 0, SS_FILE_HEADER_SIZE, ring->other);
	ring->undropped = -error;
	if (error)
		return;
	int fd = ring->fd;
	ring->fd = ring->other;
	ring->other = fd;
	ring->size = SS_FILE_HEADER_SIZE;
}

struct ss_error *ss_ring_begin_segment(struct ss_ring *ring, uint64_t monotonic_ns)
{
	if (ring->other >= 0 && ring->size > SS_FILE_HEADER_SIZE)
		alternate(ring);
	if (ring->other >= 0 || !ring->name)
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
