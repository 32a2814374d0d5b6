/*
 * A recording is a file of chunks, each with its length, a checksum and packed by zstd.
 * This packs and writes one, and reads one without trusting it.
 */
#ifndef SS_RECORD_CHUNK_H
#define SS_RECORD_CHUNK_H

#include "base/error.h"
#include "record/bytes.h"
#include "record/format.h"

/* Packs raw into out (replacing what is there), its header first. False: no memory. */
bool ss_chunk_pack(enum ss_chunk_type type, const struct ss_bytes *raw,
		   struct ss_bytes *out);

struct ss_chunk_header {
	uint32_t type;
	uint32_t compression;
	uint32_t stored;
	uint32_t raw;
	uint64_t checksum;
	uint8_t bytes[SS_CHUNK_CHECKED]; /* as they were read */
};

enum ss_chunk_result {
	SS_CHUNK_OK = 0,
	SS_CHUNK_END,	  /* the file ends where a chunk could begin */
	SS_CHUNK_CUT,	  /* it ends within this one */
	SS_CHUNK_DAMAGED, /* checksum, sizes or contents are wrong */
	SS_CHUNK_NO_MEMORY,
	SS_CHUNK_TOO_LARGE, /* with it there is more of something than is read */
};

/* Reads the header at an offset of a file. */
enum ss_chunk_result ss_chunk_read_header(int fd, uint64_t offset,
					  struct ss_chunk_header *ret);

/* Reads, checks and unpacks what follows that header. raw is replaced; scratch is kept
   for the next call. */
enum ss_chunk_result ss_chunk_read(int fd, uint64_t offset,
				   const struct ss_chunk_header *header,
				   struct ss_bytes *scratch, struct ss_bytes *raw);

#endif
