/*
 * Finds the recordings in a file that has several, one after the other.
 */
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "recording/recording.h"

/* A read of a search: most often the next recording is not far. */
enum { SEARCH_MIN = 4 << 10, SEARCH_MAX = 1 << 20 };

/* A search through a file. */
struct parts {
	int fd;
	uint64_t end; /* of the file */
	struct ss_buffer scratch;
	struct ss_buffer raw;
};

static void parts_deinit(struct parts *parts)
{
	ss_buffer_deinit(&parts->scratch);
	ss_buffer_deinit(&parts->raw);
}

static bool begins_at(const struct parts *parts, uint64_t offset)
{
	uint8_t header[SS_FILE_HEADER_SIZE];

	return ss_io_pread(parts->fd, header, sizeof(header), offset) == sizeof(header) &&
	       memcmp(header, SS_FORMAT_MAGIC, SS_MAGIC_SIZE) == 0 &&
	       ss_decode_fixed(header + 12, 4) == SS_FORMAT_ORDER;
}

/* Where the next recording begins, or the end of the file. */
static uint64_t search(struct parts *parts, uint64_t offset)
{
	for (size_t size = SEARCH_MIN; ss_buffer_reserve(&parts->scratch, size);
	     size = SS_MIN(2 * size, (size_t)SEARCH_MAX)) {
		const char *bytes = parts->scratch.bytes;
		ssize_t n = ss_io_pread(parts->fd, parts->scratch.bytes, size, offset);
		const char *found = bytes;
		if (n < 0)
			break;
		while ((found = memmem(found, (size_t)n - (size_t)(found - bytes),
				       SS_FORMAT_MAGIC, SS_MAGIC_SIZE))) {
			uint64_t at = offset + (size_t)(found - bytes);
			if (begins_at(parts, at))
				return at;
			found++;
		}
		if ((size_t)n < size)
			break;
		offset += size - SS_MAGIC_SIZE + 1;
	}
	return parts->end;
}

static uint64_t begin_time(const struct parts *parts)
{
	struct ss_cursor cursor = ss_buffer_cursor(&parts->raw);
	uint64_t numbers[SS_SEGMENT_NUMBERS] = {};

	for (size_t i = 0; i < SS_ARRAY_SIZE(numbers); i++)
		numbers[i] = ss_cursor_uleb128(&cursor);
	return cursor.failed ? 0 : numbers[SS_SEGMENT_TIME_NS];
}

/* Only the first chunk is unpacked; of the others the checksum is verified, so that a damaged
   length cannot lead into the next recording. */
static enum ss_chunk_result find_end(struct parts *parts, struct ss_recording_part *part)
{
	uint64_t at = part->offset + SS_FILE_HEADER_SIZE;
	bool first = true;

	while (at < parts->end && !begins_at(parts, at)) {
		struct ss_chunk_header header;
		enum ss_chunk_result result =
			ss_chunk_read_header(parts->fd, at, parts->end, &header);
		bool is_segment = first && header.type == SS_CHUNK_SEGMENT;
		if (result == SS_CHUNK_OK)
			result = ss_chunk_read(parts->fd, at, &header, &parts->scratch,
					       is_segment ? &parts->raw : NULL);
		if (result == SS_CHUNK_NO_MEMORY)
			return result;
		if (result != SS_CHUNK_OK) {
			at = search(parts, at);
			break;
		}
		if (is_segment)
			part->begin_ns = begin_time(parts);
		first = false;
		at += SS_CHUNK_HEADER_SIZE + (uint64_t)header.stored;
	}
	part->size = at - part->offset;
	return SS_CHUNK_OK;
}

struct ss_error *ss_recording_find_part(int fd, uint64_t offset,
					struct ss_recording_part *ret)
{
	__attribute__((cleanup(parts_deinit))) struct parts parts = { .fd = fd };
	struct ss_recording_part part = { .offset = offset };
	struct stat status;

	if (fstat(fd, &status) == 0 && status.st_size > 0)
		parts.end = (uint64_t)status.st_size;
	part.size = parts.end > offset ? parts.end - offset : 0;
	if (begins_at(&parts, offset) && find_end(&parts, &part) == SS_CHUNK_NO_MEMORY)
		return ss_error_no_memory();
	*ret = part;
	return NULL;
}
