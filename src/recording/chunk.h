/*
 * The chunks of a recording: each has a length and a checksum and is compressed with
 * zstd. Encodes chunks, and reads chunks as untrusted input.
 */
#ifndef SS_RECORDING_CHUNK_H
#define SS_RECORDING_CHUNK_H

#include "base/error.h"
#include "base/encode.h"
#include "recording/format.h"

/* Replaces out with the chunk: its header and the compressed contents. False: no
   memory. */
bool ss_chunk_pack(enum ss_chunk_type type, const struct ss_buffer *raw,
		   struct ss_buffer *out);

struct ss_chunk_header {
	uint32_t type;
	uint32_t compression;
	uint32_t stored;
	uint32_t raw;
	uint64_t checksum;
	uint8_t bytes[SS_CHUNK_CHECKED]; /* of the header, as read */
};

enum ss_chunk_result {
	SS_CHUNK_OK = 0,
	SS_CHUNK_END,	  /* the file ends between two chunks */
	SS_CHUNK_CUT,	  /* the file is truncated within this chunk */
	SS_CHUNK_DAMAGED, /* corrupted: checksum, sizes or contents */
	SS_CHUNK_NO_MEMORY,
	SS_CHUNK_TOO_LARGE, /* it would exceed a limit of the reader */
};

/* Reads the header at an offset of a file. The chunk must end before or at end. */
enum ss_chunk_result ss_chunk_read_header(int fd, uint64_t offset, uint64_t end,
					  struct ss_chunk_header *ret);

/* Reads, verifies and decompresses the contents that follow the header into raw. scratch
   is a buffer for reuse. */
enum ss_chunk_result ss_chunk_read(int fd, uint64_t offset,
				   const struct ss_chunk_header *header,
				   struct ss_buffer *scratch, struct ss_buffer *raw);

#endif
