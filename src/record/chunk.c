#include "record/chunk.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "base/io.h"
#include "base/vector.h"

/* Level 3 packs samples to a few percent of a CPU; higher ones gain little. */
enum { LEVEL = 3, PACK_MIN = 64 };

static uint64_t checksum(const uint8_t *header, const uint8_t *stored, size_t size)
{
	uint64_t sum = XXH3_64bits(header, SS_CHUNK_CHECKED);

	return XXH3_64bits_withSeed(stored, size, sum);
}

static void put_header(struct ss_bytes *out, enum ss_chunk_type type,
		       enum ss_compression compression, size_t stored, size_t raw)
{
	ss_bytes_put_fixed(out, type, 4);
	ss_bytes_put_fixed(out, compression, 4);
	ss_bytes_put_fixed(out, stored, 4);
	ss_bytes_put_fixed(out, raw, 4);
}

/* Packs behind the room for the header. 0: it did not become smaller. */
static size_t pack(const struct ss_bytes *raw, struct ss_bytes *out)
{
	size_t size = raw->count < PACK_MIN ?
			      0 :
			      ZSTD_compress(out->items + SS_CHUNK_HEADER_SIZE,
					    out->capacity - SS_CHUNK_HEADER_SIZE,
					    raw->items, raw->count, LEVEL);

	return ZSTD_isError(size) || size >= raw->count ? 0 : size;
}

bool ss_chunk_pack(enum ss_chunk_type type, const struct ss_bytes *raw,
		   struct ss_bytes *out)
{
	if (raw->failed || raw->count > SS_CHUNK_RAW_MAX ||
	    !ss_vector_reserve(out,
			       SS_CHUNK_HEADER_SIZE + ZSTD_compressBound(raw->count)))
		return false;
	size_t packed = pack(raw, out);
	size_t stored = packed ? packed : raw->count;
	if (!packed && stored)
		memcpy(out->items + SS_CHUNK_HEADER_SIZE, raw->items, stored);
	out->count = 0;
	put_header(out, type, packed ? SS_COMPRESSION_ZSTD : SS_COMPRESSION_NONE, stored,
		   raw->count);
	ss_bytes_put_fixed(
		out, checksum(out->items, out->items + SS_CHUNK_HEADER_SIZE, stored), 8);
	out->count += stored;
	return !out->failed;
}

enum ss_chunk_result ss_chunk_read_header(int fd, uint64_t offset,
					  struct ss_chunk_header *ret)
{
	uint8_t bytes[SS_CHUNK_HEADER_SIZE];
	ssize_t n = ss_io_pread(fd, bytes, sizeof(bytes), offset);

	if (n == 0)
		return SS_CHUNK_END;
	if (n != sizeof(bytes))
		return SS_CHUNK_CUT;
	memcpy(ret->bytes, bytes, sizeof(ret->bytes));
	ret->type = (uint32_t)ss_fixed_get(bytes, 4);
	ret->compression = (uint32_t)ss_fixed_get(bytes + 4, 4);
	ret->stored = (uint32_t)ss_fixed_get(bytes + 8, 4);
	ret->raw = (uint32_t)ss_fixed_get(bytes + 12, 4);
	ret->checksum = ss_fixed_get(bytes + 16, 8);
	if (ret->raw > SS_CHUNK_RAW_MAX || ret->stored > ret->raw)
		return SS_CHUNK_DAMAGED;
	return SS_CHUNK_OK;
}

static enum ss_chunk_result unpack(const struct ss_chunk_header *header,
				   const struct ss_bytes *stored, struct ss_bytes *raw)
{
	size_t size = header->raw;

	if (header->compression == SS_COMPRESSION_NONE && header->stored == size) {
		if (size)
			memcpy(raw->items, stored->items, size);
	} else if (header->compression != SS_COMPRESSION_ZSTD ||
		   ZSTD_decompress(raw->items, size, stored->items, header->stored) !=
			   size) {
		return SS_CHUNK_DAMAGED;
	}
	raw->count = size;
	return SS_CHUNK_OK;
}

enum ss_chunk_result ss_chunk_read(int fd, uint64_t offset,
				   const struct ss_chunk_header *header,
				   struct ss_bytes *scratch, struct ss_bytes *raw)
{
	raw->count = 0;
	if (!ss_vector_reserve(scratch, (size_t)header->stored + 1))
		return SS_CHUNK_NO_MEMORY;
	ssize_t n = ss_io_pread(fd, scratch->items, header->stored,
				offset + SS_CHUNK_HEADER_SIZE);
	if (n < 0 || (size_t)n != header->stored)
		return SS_CHUNK_CUT;
	/* Checked before anything is allocated by what it says. */
	if (checksum(header->bytes, scratch->items, header->stored) != header->checksum)
		return SS_CHUNK_DAMAGED;
	if (!ss_vector_reserve(raw, (size_t)header->raw + 1))
		return SS_CHUNK_NO_MEMORY;
	return unpack(header, scratch, raw);
}
