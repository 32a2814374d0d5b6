#include "core/core_source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/io.h"
#include "base/search.h"
#include "base/vector.h"
#include "core/decompress.h"

enum {
	/* Headers and notes: 65,530 mappings and thousands of threads are some 20 MiB. */
	PREFIX_MAX = 256 << 20,
	PREFIX_STEP = 1 << 20,
	SCRATCH = 128 << 10,
	ZEROS = 4096,
};

/* Bytes of the core file that are kept, sorted by offset. */
struct range {
	uint64_t offset;
	uint64_t size;	/* wanted */
	uint64_t found; /* so far */
	uint8_t *bytes; /* owned; NULL: none found */
};

struct ss_core_source {
	int fd;				      /* owned */
	uint64_t size;			      /* UINT64_MAX: not known */
	struct ss_decompressor *decompressor; /* NULL: not compressed */
	uint64_t position;		      /* of the decompressor */
	struct ss_buffer prefix;
	bool fetched;
	SS_VECTOR(struct range) wanted;
	SS_VECTOR(struct range) ranges;
	uint64_t total; /* bytes in ranges */
	uint8_t scratch[SCRATCH];
};

struct ss_error *ss_core_source_new(int fd, struct ss_core_source **ret)
{
	_cleanup_(ss_core_source_cleanup) struct ss_core_source *source =
		calloc(1, sizeof(*source));
	struct stat status;

	if (!source) {
		close_cleanup(&fd);
		return ss_error_no_memory();
	}
	source->fd = fd;
	struct ss_error *error = ss_decompressor_new(fd, &source->decompressor);
	if (error)
		return error;
	if (source->decompressor)
		source->size = UINT64_MAX;
	else if (fstat(fd, &status) == 0)
		source->size = (uint64_t)status.st_size;
	*ret = take_ptr(source);
	return NULL;
}

void ss_core_source_free(struct ss_core_source *source)
{
	if (!source)
		return;
	for (size_t i = 0; i < source->ranges.count; i++)
		free(source->ranges.items[i].bytes);
	ss_vector_free(&source->ranges);
	ss_vector_free(&source->wanted);
	ss_buffer_deinit(&source->prefix);
	ss_decompressor_free(source->decompressor);
	close_cleanup(&source->fd);
	free(source);
}

bool ss_core_source_is_compressed(const struct ss_core_source *source)
{
	return source->decompressor != NULL;
}

uint64_t ss_core_source_size(const struct ss_core_source *source)
{
	return source->size;
}

/* The next bytes of the core file, in scratch. */
static size_t decompress(struct ss_core_source *source)
{
	size_t size = ss_decompressor_read(source->decompressor, source->scratch,
					   sizeof(source->scratch));

	source->position += size;
	if (size < sizeof(source->scratch))
		source->size = source->position;
	return size;
}

static void extend_prefix(struct ss_core_source *source, uint64_t end)
{
	end = SS_MIN(end + PREFIX_STEP, (uint64_t)PREFIX_MAX);
	while (source->prefix.size < end && source->size == UINT64_MAX &&
	       !source->prefix.failed) {
		size_t size = decompress(source);
		ss_buffer_add(&source->prefix, source->scratch, size);
	}
}

static size_t copy(void *to, size_t size, uint64_t offset, const void *from,
		   uint64_t start, uint64_t count)
{
	if (offset < start || offset - start >= count)
		return 0;
	size = (size_t)SS_MIN((uint64_t)size, count - (offset - start));
	memcpy(to, (const char *)from + (offset - start), size);
	return size;
}

ssize_t ss_core_source_read(struct ss_core_source *source, void *bytes, size_t size,
			    uint64_t offset)
{
	if (!source->decompressor)
		return ss_io_pread(source->fd, bytes, size, offset);
	if (!source->fetched && offset < PREFIX_MAX &&
	    source->prefix.size < offset + size)
		extend_prefix(source, offset + size);
	size_t found =
		copy(bytes, size, offset, source->prefix.bytes, 0, source->prefix.size);
	if (found == size)
		return (ssize_t)found;
	size_t at = ss_lower_bound(
		source->ranges.count, i,
		source->ranges.items[i].offset + source->ranges.items[i].size <= offset);
	if (at == source->ranges.count)
		return (ssize_t)found;
	const struct range *range = &source->ranges.items[at];
	size_t more =
		copy(bytes, size, offset, range->bytes, range->offset, range->found);
	return (ssize_t)SS_MAX(found, more);
}

bool ss_core_source_want(struct ss_core_source *source, uint64_t offset, uint64_t size)
{
	if (!source->decompressor || size == 0 || size > UINT64_MAX - offset ||
	    offset + size <= source->prefix.size)
		return true;
	struct range *range = ss_vector_push(&source->wanted);
	if (!range)
		return false;
	range->offset = offset;
	range->size = size;
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a;
	const struct range *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Ranges that touch become one. What was there before is collected again. */
static bool merge_wanted(struct ss_core_source *source, uint64_t max)
{
	size_t count = 0;

	for (size_t i = 0; i < source->ranges.count; i++) {
		struct range *range = &source->ranges.items[i];
		if (!ss_core_source_want(source, range->offset, range->size))
			return false;
		free(range->bytes);
		range->bytes = NULL;
	}
	source->ranges.count = 0;
	qsort(source->wanted.items, source->wanted.count, sizeof(*source->wanted.items),
	      compare_ranges);
	for (size_t i = 0; i < source->wanted.count; i++) {
		struct range *range = &source->wanted.items[i];
		struct range *last = count ? &source->wanted.items[count - 1] : NULL;
		uint64_t end = range->offset + range->size;
		if (last && range->offset <= last->offset + last->size)
			last->size = SS_MAX(last->size, end - last->offset);
		else
			source->wanted.items[count++] = *range;
	}
	for (size_t i = 0; i < count; i++) {
		struct range *range = ss_vector_push(&source->ranges);
		if (!range)
			return false;
		*range = source->wanted.items[i];
		range->size = SS_MIN(range->size, max);
		max -= range->size;
	}
	source->wanted.count = 0;
	return true;
}

/* Leaves out zeros, so that untouched memory of the process needs none here. to is zero. */
static void copy_data(uint8_t *to, const uint8_t *from, size_t size)
{
	static const uint8_t zeros[ZEROS];

	for (size_t at = 0; at < size; at += ZEROS) {
		size_t part = SS_MIN(size - at, (size_t)ZEROS);
		if (memcmp(from + at, zeros, part) != 0)
			memcpy(to + at, from + at, part);
	}
}

/* Copies what scratch, which ends at the position, has of the range. */
static bool collect(struct ss_core_source *source, struct range *range, size_t size)
{
	uint64_t start = source->position - size;
	uint64_t from = SS_MAX(range->offset, start);
	uint64_t to = SS_MIN(range->offset + range->size, source->position);

	if (from >= to)
		return true;
	if (!range->bytes)
		range->bytes = calloc(1, range->size);
	if (!range->bytes)
		return false;
	copy_data(range->bytes + (from - range->offset), source->scratch + (from - start),
		  to - from);
	range->found = to - range->offset;
	return true;
}

/* A range that begins in the prefix, which the decompressor is behind. */
static bool begin_again(struct ss_core_source *source)
{
	source->position = 0;
	return ss_decompressor_rewind(source->decompressor);
}

bool ss_core_source_fetch(struct ss_core_source *source, uint64_t max)
{
	size_t first = 0;

	source->fetched = true;
	if (!source->decompressor || source->wanted.count == 0)
		return true;
	if (!merge_wanted(source, max) || source->prefix.failed)
		return false;
	if (source->ranges.items[0].offset < source->position && !begin_again(source))
		return false;
	while (first < source->ranges.count) {
		size_t size = decompress(source);
		if (size == 0)
			break;
		for (size_t i = first; i < source->ranges.count; i++) {
			struct range *range = &source->ranges.items[i];
			if (range->offset >= source->position)
				break;
			if (!collect(source, range, size))
				return false;
			if (range->offset + range->size <= source->position)
				first = i + 1;
		}
	}
	return true;
}
