/*
 * A recording that is being read: tables of everything that was defined, under numbers
 * of the whole recording, and where its chunks of samples are.
 */
#ifndef SS_RECORD_RECORDING_H
#define SS_RECORD_RECORDING_H

#include "base/error.h"
#include "base/intern.h"
#include "base/vector.h"
#include "model/snapshot.h"
#include "record/chunk.h"
#include "record/idtable.h"

/* What a hostile file may make us keep. */
enum {
	SS_STRINGS_MAX = 64 << 20, /* bytes */
	SS_PROCESSES_MAX = 1 << 18,
	SS_THREADS_MAX = 2 << 20,
	SS_MODULES_MAX = 1 << 18,
	SS_PLACES_MAX = 1 << 20,
	SS_STACK_WORDS = 64 << 20,    /* of four bytes: frames of all stacks, */
	SS_STACK_WORDS_PER_BYTE = 32, /* and more for each byte of the file */
	SS_STACK_WORDS_MAX = 256 << 20,
	SS_STACK_WORDS_TIMES =
		8, /* so often for all stacks that are defined, equal or not */
	SS_CALLS_MAX = 4 << 20, /* of a segment */
	SS_WAITS_MAX = 1 << 18,
	SS_LOCALS_MAX = 16 << 20, /* numbers of all segments that samples refer to, and
				     of one segment for definitions */
	SS_CHUNKS_MAX = 16 << 20,
};

/* From a segment's own numbers to the recording's. */
struct ss_locals {
	SS_VECTOR(uint32_t) items;
};

struct ss_recorded_call {
	int64_t number;
	uint64_t argument;
};

/* What samples of a segment refer to. */
struct ss_segment {
	struct ss_locals threads;
	struct ss_locals stacks;
	SS_VECTOR(struct ss_recorded_call) calls;
};

struct ss_sample_chunk {
	uint64_t offset;
	struct ss_chunk_header header;
	uint32_t segment;
	uint64_t first_tick;
};

/* The text of a process's perf map, as far as it was read. */
struct ss_recorded_perf_map {
	uint64_t settled; /* offsets in the file */
	uint64_t first;
	bool full;
	struct ss_bytes text;
};

/* One that is being read. */
struct ss_decoder {
	struct ss_cursor at;
	const struct ss_segment *segment;
	struct ss_sample sample; /* of the tick at hand */
	uint64_t samples_left;
	uint64_t ticks_left;
	int64_t distance;
	uint64_t repeats; /* still to be handed out */
	size_t next;	  /* in list */
	struct ss_listed_vector {
		struct ss_read_entry *items;
		size_t count;
		size_t capacity;
	} list, made;
	uint64_t ticks_read;	   /* since ever, also over again */
	SS_VECTOR(uint64_t) ticks; /* by thread: how many they were at its last sample */
};

struct ss_recording {
	int fd;
	struct ss_recording_info info;
	struct ss_intern *strings;
	SS_VECTOR(const char *) texts; /* by number - 1 */
	struct ss_idtable text_ids;
	SS_VECTOR(struct ss_recorded_process) processes;
	struct ss_idtable process_ids;
	SS_VECTOR(struct ss_recorded_thread) threads;
	struct ss_idtable thread_ids;
	SS_VECTOR(struct ss_recorded_module) modules;
	struct ss_idtable module_ids;
	struct ss_idtable place_ids;
	struct ss_idtable stack_ids;
	SS_VECTOR(struct ss_recorded_stack) stacks;
	SS_VECTOR(struct ss_recorded_wait) waits;
	SS_VECTOR(struct ss_segment) segments;
	size_t locals;		      /* of all segments */
	uint64_t words_read;	      /* frames of all stacks as they were defined */
	enum ss_chunk_result refusal; /* why a chunk is not read on */
	SS_VECTOR(struct ss_sample_chunk) chunks;
	struct ss_snapshot *places; /* each a stack of one frame, with modules */
	SS_VECTOR(struct ss_recorded_perf_map) perf_maps;
	SS_VECTOR(uint32_t) perf_map_numbers; /* + 1, by process; 0: none */
	size_t perf_map_bytes;
	uint32_t *perf_map_of; /* by place */
	bool symbolized;
	struct ss_bytes scratch;
	struct ss_bytes raw;
	size_t next_chunk;
	struct ss_decoder decoder;
};

/* The key of a place: with the recording's numbers. */
struct ss_place_key {
	uint64_t value;
	uint32_t module; /* or SS_ID_NONE */
	uint32_t flags;
	uint32_t area;	  /* text, or 0 */
	uint32_t process; /* without a module: its number + 1, or 0: not known */
};

/* The key of a stack: numbers of 32 bits. */
enum { SS_STACK_END, SS_STACK_REASON, SS_STACK_PLACES };

/* The numbers of the segment at hand that only definitions refer to. */
struct ss_scope {
	struct ss_segment *segment;
	struct ss_locals strings;
	struct ss_locals processes;
	struct ss_locals modules;
	struct ss_locals places;
	size_t locals;	     /* of these */
	struct ss_bytes key; /* of the stack at hand, and before of the last one */
	struct ss_bytes last;
};

/* Leaves an empty one. */
void ss_scope_deinit(struct ss_scope *scope);

/* The recording's number of a text of the segment that comes next; 0: none. */
uint32_t ss_scope_read_text(const struct ss_scope *scope, struct ss_cursor *cursor);

/* The recording's number for the next one, of the segment; SS_ID_NONE: it failed. */
uint32_t ss_locals_read(const struct ss_locals *locals, struct ss_cursor *cursor);
/* Appends a number, if it is one. all: how many there are of this kind of list. */
bool ss_locals_add(struct ss_recording *recording, struct ss_locals *locals, size_t *all,
		   uint32_t number);

/* The number of a thing in one of the recording's tables, which may have so many.
   SS_ID_NONE: it is refused. */
uint32_t ss_recording_number(struct ss_recording *recording, struct ss_idtable *table,
			     const void *key, size_t size, size_t max, bool *added);

/* Notes why a chunk is not read on where it is not damaged. False, to be returned. */
bool ss_recording_refuse(struct ss_recording *recording, enum ss_chunk_result why);

/* Reads the definitions of a chunk. False: they are damaged, or refused. */
bool ss_definitions_read(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *cursor);

/* The contents of definitions of one kind, likewise. */
bool ss_frame_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *cursor);
bool ss_stack_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *cursor);
bool ss_call_read(struct ss_recording *recording, struct ss_scope *scope,
		  struct ss_cursor *cursor);
bool ss_waits_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *cursor);

/* A chunk with a part of a perf map. */
bool ss_perf_map_read(struct ss_recording *recording, const struct ss_scope *scope,
		      struct ss_cursor *cursor);
/* Gives the maps to the snapshot of places. False without memory. */
bool ss_perf_maps_complete(struct ss_recording *recording);
void ss_perf_maps_free(struct ss_recording *recording);

/* The number of a text, from 1 on; 0: it is not one, or there is no room. */
uint32_t ss_recording_text(struct ss_recording *recording, const uint8_t *bytes,
			   size_t size);

/* Makes what accessors hand out, when everything is defined. */
struct ss_error *ss_recording_complete(struct ss_recording *recording);

/* Reads the head of a chunk of samples. False: damaged. */
struct ss_samples_head {
	uint64_t first;
	uint64_t samples;
	uint64_t ticks;
	uint64_t begin_ns;
	int64_t distance;
	uint64_t length_ns;
	uint64_t missed;
	uint64_t stopped_ns;
};
bool ss_samples_read_head(struct ss_cursor *cursor, struct ss_samples_head *ret);

/* Begins to read a chunk of samples, raw, which must stay. False: damaged. */
bool ss_decoder_begin(struct ss_decoder *decoder, const struct ss_bytes *raw,
		      const struct ss_segment *segment, uint64_t first_tick);
/* Its next sample. SS_CHUNK_END: there is none. */
enum ss_chunk_result ss_decoder_next(struct ss_decoder *decoder, struct ss_sample *ret);
void ss_decoder_deinit(struct ss_decoder *decoder);

SS_DEFINE_CLEANUP(struct ss_recording, ss_recording, ss_recording_close)

#endif
