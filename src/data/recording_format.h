/*
 * The constants of the recording format, which stacksnap-recording(5) specifies. Keep both
 * in step.
 */
#ifndef SS_DATA_RECORDING_FORMAT_H
#define SS_DATA_RECORDING_FORMAT_H

#include <stdint.h>

#include "base/buffer.h"
#include "data/schema.h"
#include "stacksnap.h"

enum {
	SS_FORMAT_VERSION = 2,
	SS_FORMAT_ORDER = 0x01020304,
	SS_MAGIC_SIZE = 8,
	SS_FILE_HEADER_SIZE = 16,
	SS_CHUNK_HEADER_SIZE = 24,
	SS_CHUNK_CHECKED = 16,		/* bytes of the header that the checksum covers */
	SS_CHUNK_RAW_MAX = 32 << 20,	/* uncompressed, at most */
	SS_RECORD_FRAMES_MAX = 1 << 20, /* of one stack */
	SS_FORMAT_KINDS_MAX = 256,	/* of frames */
	SS_FORMAT_TEXT_MAX = 1 << 16,	/* bytes of a text */
	SS_FORMAT_LABELS_MAX = 1024,
	SS_FORMAT_LABEL_MAX = 1 << 12,
	SS_PERF_MAP_MAX = 32 << 20,  /* of a process: 300,000 functions */
	SS_PERF_MAPS_MAX = 64 << 20, /* of a segment */
};

#define SS_FORMAT_MAGIC "\x89SSREC\r\n"

#define SS_CHUNK_TYPE(a, b, c, d)                                                        \
	((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

enum ss_chunk_type {
	SS_CHUNK_SEGMENT = SS_CHUNK_TYPE('S', 'E', 'G', 'M'),
	SS_CHUNK_DEFINITIONS = SS_CHUNK_TYPE('D', 'E', 'F', 'S'),
	SS_CHUNK_SAMPLES = SS_CHUNK_TYPE('S', 'M', 'P', 'L'),
	SS_CHUNK_PERF_MAP = SS_CHUNK_TYPE('P', 'M', 'A', 'P'),
	SS_CHUNK_SUMMARY = SS_CHUNK_TYPE('S', 'U', 'M', 'M'),
	SS_CHUNK_EVENTS = SS_CHUNK_TYPE('E', 'V', 'N', 'T'),
};

enum ss_compression {
	SS_COMPRESSION_NONE = 0,
	SS_COMPRESSION_ZSTD = 1,
};

enum ss_definition {
	SS_DEFINE_STRING = 1,
	SS_DEFINE_PROCESS = 2,
	SS_DEFINE_THREAD = 3,
	SS_DEFINE_MODULE = 4,
	SS_DEFINE_FRAME = 5,
	SS_DEFINE_STACK = 6,
	SS_DEFINE_CALL = 7,
	SS_DEFINE_THREAD_END = 8,
	SS_DEFINE_MODULE_END = 9,
	SS_DEFINE_THREAD_NAME = 10,
	SS_DEFINE_PROCESS_END = 11,
	SS_DEFINE_WAIT = 12,
	SS_DEFINE_PROBE = 13,
	SS_DEFINE_TRACE = 14, /* its totals */
	/* 15 to 17 are skipped: versions before the first release used them */
	SS_DEFINE_TASK_COVERAGE = 18, /* how far those of a kind are known */
	SS_DEFINE_TASK = 19,	      /* of a runtime */
	SS_DEFINE_KINDS
};

/* The head of an event: kind, count of arguments, depth. */
enum {
	SS_EVENT_KIND_BITS = 3,
	SS_EVENT_ARGS_BITS = 3,
	SS_EVENT_DEPTH_MAX = 1 << 20,
};

enum { SS_WAIT_IN_CYCLE = 1 };

/* Flags of a frame; three bits hold its source (enum ss_frame_source). */
enum {
	SS_FRAME_SIGNAL = 1,
	SS_FRAME_CALL = 2, /* a return address: symbolized one byte before */
	SS_FRAME_SOURCE_SHIFT = 2,
	SS_FRAME_SOURCE_MASK = 7,
	SS_FRAME_REPLACED = 32, /* the calls of a runtime before it stand for it */
	SS_FRAME_FLAGS_END = 64,
};

/* The source in the flags of a frame. */
static inline uint32_t ss_frame_flags_source(uint32_t flags)
{
	return flags >> SS_FRAME_SOURCE_SHIFT & SS_FRAME_SOURCE_MASK;
}

/* The low bits of an operation in a chunk of samples. */
enum ss_operation {
	SS_OP_TICK = 0,
	SS_OP_REPEAT = 1,
	SS_OP_SKIP = 2,
	SS_OP_SAMPLE = 3,
	SS_OP_READY = 4, /* of the sample that follows */
};

enum {
	SS_OP_BITS = 3,
	SS_OP_COUNT_MORE = 31, /* of REPEAT and SKIP: the rest follows as a number */
};

enum {
	SS_TICK_WALL = 1, /* the wall clock was set */
	SS_TICK_MISSED = 2,
	SS_TICK_STOPPED = 4,
};

enum {
	SS_SAMPLE_NEW = 1, /* of a thread that is not in the list */
	SS_SAMPLE_STACK = 2,
	SS_SAMPLE_STATE = 4,
	SS_SAMPLE_CPU = 8,
	SS_SAMPLE_CALL = 16,
};

/*
 * The chunks of a recording: each has a length and a checksum and is compressed with
 * zstd. Encodes chunks, and reads chunks as untrusted input.
 */

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
 * The fields of definitions in a recording, for its writer and its reader:
 * stacksnap-recording(5). Processes, threads, modules and stacks are numbers of the segment;
 * texts are numbers of its strings.
 */

/* struct ss_recorded_module, with the module. */
struct ss_module_record {
	uint32_t process;
	struct ss_module module;
	uint64_t bias;
	uint64_t begin_ns;
};

/* By enum ss_definition: of struct ss_recorded_process, ss_recorded_thread, ss_module_record,
   ss_recorded_probe, ss_trace_summary, ss_recorded_coverage, ss_recorded_task. Other records
   have no fields. */
extern const struct ss_schema ss_record_schemas[SS_DEFINE_KINDS];

#endif
