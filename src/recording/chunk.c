#include "recording/chunk.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "base/io.h"

/* Level 3 takes a few percent of a CPU for samples; higher levels gain little. */
enum { LEVEL = 3, PACK_MIN = 64 };

static uint64_t checksum(const void *header, const void *stored, size_t size)
{
	uint64_t sum = XXH3_64bits(header, SS_CHUNK_CHECKED);

	return XXH3_64bits_withSeed(stored, size, sum);
}

static void encode_header(uint8_t *header, enum ss_chunk_type type, size_t packed,
			  size_t raw)
{
	ss_encode_fixed(header, type, 4);
	ss_encode_fixed(header + 4, packed ? SS_COMPRESSION_ZSTD : SS_COMPRESSION_NONE,
			4);
	ss_encode_fixed(header + 8, packed ? packed : raw, 4);
	ss_encode_fixed(header + 12, raw, 4);
}

/* Compresses into the space after the header. 0: the result would not be smaller. */
static size_t pack(const struct ss_buffer *raw, struct ss_buffer *out)
{
	size_t size = raw->size < PACK_MIN ?
			      0 :
			      ZSTD_compress(out->bytes + SS_CHUNK_HEADER_SIZE,
					    out->capacity - SS_CHUNK_HEADER_SIZE,
					    raw->bytes, raw->size, LEVEL);

	return ZSTD_isError(size) || size >= raw->size ? 0 : size;
}

bool ss_chunk_pack(enum ss_chunk_type type, const struct ss_buffer *raw,
		   struct ss_buffer *out)
{
	ss_buffer_clear(out);
	if (raw->failed || raw->size > SS_CHUNK_RAW_MAX ||
	    !ss_buffer_reserve(out, SS_CHUNK_HEADER_SIZE + ZSTD_compressBound(raw->size)))
		return false;
	uint8_t *header = (uint8_t *)out->bytes;
	uint8_t *stored = header + SS_CHUNK_HEADER_SIZE;
	size_t packed = pack(raw, out);
	if (!packed && raw->size)
		memcpy(stored, raw->bytes, raw->size);
	size_t size = packed ? packed : raw->size;
	encode_header(header, type, packed, raw->size);
	ss_encode_fixed(header + SS_CHUNK_CHECKED, checksum(header, stored, size), 8);
	out->size = SS_CHUNK_HEADER_SIZE + size;
	out->bytes[out->size] = '\0';
	return true;
}

enum ss_chunk_result ss_chunk_read_header(int fd, uint64_t offset, uint64_t end,
					  struct ss_chunk_header *ret)
{
	uint8_t bytes[SS_CHUNK_HEADER_SIZE];
	uint64_t left = offset < end ? end - offset : 0;
	size_t size = (size_t)SS_MIN((uint64_t)sizeof(bytes), left);
	ssize_t n = size ? ss_io_pread(fd, bytes, size, offset) : 0;

	if (n == 0)
		return SS_CHUNK_END;
	if (n != sizeof(bytes))
		return SS_CHUNK_CUT;
	memcpy(ret->bytes, bytes, sizeof(ret->bytes));
	ret->type = (uint32_t)ss_decode_fixed(bytes, 4);
	ret->compression = (uint32_t)ss_decode_fixed(bytes + 4, 4);
	ret->stored = (uint32_t)ss_decode_fixed(bytes + 8, 4);
	ret->raw = (uint32_t)ss_decode_fixed(bytes + 12, 4);
	ret->checksum = ss_decode_fixed(bytes + 16, 8);
	if (ret->raw > SS_CHUNK_RAW_MAX || ret->stored > ret->raw)
		return SS_CHUNK_DAMAGED;
	return ret->stored > left - sizeof(bytes) ? SS_CHUNK_CUT : SS_CHUNK_OK;
}

static enum ss_chunk_result unpack(const struct ss_chunk_header *header,
				   const struct ss_buffer *stored, struct ss_buffer *raw)
{
	size_t size = header->raw;

	if (header->compression == SS_COMPRESSION_NONE && header->stored == size) {
		if (size)
			memcpy(raw->bytes, stored->bytes, size);
	} else if (header->compression != SS_COMPRESSION_ZSTD ||
		   ZSTD_decompress(raw->bytes, size, stored->bytes, header->stored) !=
			   size) {
		return SS_CHUNK_DAMAGED;
	}
	raw->size = size;
	return SS_CHUNK_OK;
}

enum ss_chunk_result ss_chunk_read(int fd, uint64_t offset,
				   const struct ss_chunk_header *header,
				   struct ss_buffer *scratch, struct ss_buffer *raw)
{
	ss_buffer_clear(scratch);
	if (!ss_buffer_reserve(scratch, header->stored))
		return SS_CHUNK_NO_MEMORY;
	ssize_t n = ss_io_pread(fd, scratch->bytes, header->stored,
				offset + SS_CHUNK_HEADER_SIZE);
	if (n < 0 || (size_t)n != header->stored)
		return SS_CHUNK_CUT;
	/* Verified before any of its sizes is used for an allocation. */
	if (checksum(header->bytes, scratch->bytes, header->stored) != header->checksum)
		return SS_CHUNK_DAMAGED;
	if (!raw)
		return SS_CHUNK_OK;
	ss_buffer_clear(raw);
	if (!ss_buffer_reserve(raw, header->raw))
		return SS_CHUNK_NO_MEMORY;
	return unpack(header, scratch, raw);
}
