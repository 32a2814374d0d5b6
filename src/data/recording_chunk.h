/*
 * The chunks of a recording: each has a length and a checksum and is compressed with
 * zstd. Encodes chunks, and reads chunks as untrusted input.
 */
#ifndef SS_DATA_RECORDING_CHUNK_H
#define SS_DATA_RECORDING_CHUNK_H

#include "base/encode.h"
#include "base/error.h"
#include "base/vector.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"

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

/*
 * Encodes the samples of one chunk. Each tick is written as changes since the previous
 * tick: most threads of a server are idle.
 */

/* The last sample of a thread in the chunk. */
struct ss_listed {
	uint32_t thread; /* handle */
	uint32_t stack;
	uint32_t call;
	char state;
};

struct ss_ticks {
	struct ss_buffer out;
	uint64_t first; /* number of the first sample */
	uint64_t count;
	uint64_t tick_count;
	uint64_t missed;
	uint64_t stopped_ns;
	uint64_t begin_ns;	/* CLOCK_MONOTONIC of the first tick */
	uint64_t monotonic_ns;	/* of the last tick */
	int64_t begin_distance; /* wall clock minus monotonic, of the first tick */
	int64_t distance;	/* of the last tick */
	SS_VECTOR(struct ss_listed) list;
	SS_VECTOR(uint32_t) places; /* by handle: index in list + 1; 0: not in it */
};

void ss_ticks_deinit(struct ss_ticks *ticks);

/* local: the number of a thread in this segment, by its handle. False: no memory. */
typedef uint32_t ss_local_thread(const void *data, uint32_t handle);
bool ss_ticks_add(struct ss_ticks *ticks, const struct ss_tick_record *tick,
		  const struct ss_sample_record *samples, size_t count,
		  ss_local_thread *local, const void *data);

/* Appends the contents of a chunk: the head and the samples. */
void ss_ticks_put(const struct ss_ticks *ticks, struct ss_buffer *ret);

/* Called after the chunk was written: the next tick begins a new one. */
void ss_ticks_reset(struct ss_ticks *ticks);

#endif
