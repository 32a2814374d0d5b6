/*
 * A recording that is open for reading: tables of all definitions, numbered through the
 * whole recording, and the places of its chunks of samples.
 */
#ifndef SS_DATA_RECORDING_H
#define SS_DATA_RECORDING_H

#include "base/error.h"
#include "base/intern.h"
#include "base/vector.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"
#include "data/snapshot.h"
#include "stacksnap/record.h"
#include "stacksnap/trace.h"

/* A task of a runtime in a snapshot. */
struct ss_recorded_task {
	uint64_t tick; /* of the snapshot, as in its samples */
	uint32_t process;
	uint32_t thread; /* the one of task.tid; UINT32_MAX: none, or not known */
	uint32_t stack;
	enum ss_task_kind kind; /* in the file: that of task */
	/* Not a THREAD; with the members that are recorded. The tasks of its kind that awaited and
	   cycle_next refer to need not exist. */
	struct ss_task task;
};

/* A hit, or a scope from its entry to its end. There are many: compact. */
struct ss_recorded_event {
	uint64_t duration_ns; /* EXIT, LEFT, OPEN */
	uint32_t probe;
	uint32_t args;	     /* the first one, in event_args */
	uint32_t depth : 24; /* see struct ss_trace_event */
	/* enum ss_trace_kind: HIT; how the scope ended: EXIT, LEFT, OPEN; or ENTER: the recording
	   ends before */
	uint32_t kind : 4;
	uint32_t arg_count : 4;
};

/* Whether a file begins like a recording, of any version. Reads at offset 0. */
bool ss_recording_is(int fd);

/* Where a recording lies in a file: recordings may follow one another. */
struct ss_recording_part {
	uint64_t offset;
	uint64_t size;
	uint64_t begin_ns; /* CLOCK_REALTIME; 0: not known */
};

/*
 * Finds the end of the recording that begins at an offset: the beginning of the next one, also
 * if it is incomplete, or else the end of the file. What is no recording is one part as well:
 * ss_recording_open_part() tells why. Errors: NO_MEMORY.
 */
struct ss_error *ss_recording_find_part(int fd, uint64_t offset,
					struct ss_recording_part *ret);

/* Opens one of several recordings in a file, as ss_recording_open_fd(). */
struct ss_error *ss_recording_open_part(int fd, const struct ss_recording_part *part,
					struct ss_recording **ret);
/* The same for an open file. The library owns fd, even after a failure. */
struct ss_error *ss_recording_open_fd(int fd, struct ss_recording **ret);

/* The event that a sample stands for. NULL: none is known. */
const struct ss_recorded_event *ss_recording_event(const struct ss_recording *recording,
						   const struct ss_sample *sample);

/*
 * The same for snapshots of one process, in order of time, taken every period_ns. Each is
 * a tick of the recording. Waits are those of the last one. Errors: INVALID (no snapshot),
 * SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_snapshots_record(const struct ss_snapshot *const *snapshots,
				     size_t count, uint64_t period_ns,
				     const struct ss_recording_about *about, int fd);

/* Limits on the memory that a hostile file can make us use. */
enum {
	SS_STRINGS_MAX = 64 << 20, /* bytes */
	SS_PROCESSES_MAX = 1 << 18,
	SS_THREADS_MAX = 2 << 20,
	SS_MODULES_MAX = 1 << 18,
	SS_PLACES_MAX = 1 << 20,
	SS_STACK_WORDS = 16 << 20,     /* 32-bit words: frames of all stacks, */
	SS_STACK_WORDS_PER_BYTE = 128, /* and more for each byte of the file */
	SS_STACK_WORDS_MAX = 256 << 20,
	SS_STACK_WORDS_TIMES = 8, /* factor for the limit if duplicate stacks count */
	SS_CALLS_MAX = 4 << 20,	  /* per segment */
	SS_WAITS_MAX = 1 << 18,
	SS_TASK_COVERAGE_MAX = 1 << 18,
	SS_TASKS = 1 << 16, /* of runtimes: 1.1 to 9 bytes of the file each, measured, */
	SS_TASKS_PER_BYTE = 1, /* and more for each byte of the file */
	SS_TASKS_MAX = 4 << 20,
	SS_AWAITED_MAX = 4 << 20,    /* what they wait for */
	SS_CALL_WAITS_MAX = 1 << 16, /* different ones */
	SS_PROBES_MAX = 1 << 12,
	SS_EVENTS = 1 << 20, /* of traces, */
	SS_EVENTS_PER_BYTE = 8,
	SS_EVENTS_MAX = 48 << 20,
	SS_LOCALS_MAX =
		16
		<< 20, /* numbers that samples refer to, of all segments; and numbers that
				     definitions refer to, of one segment */
	SS_CHUNKS_MAX = 16 << 20,
	SS_RECORDS = 1 << 20, /* of definitions, */
	SS_RECORDS_PER_BYTE = 8,
	SS_RAW_MIB = 256, /* of the contents of chunks, uncompressed, */
	SS_RAW_PER_BYTE = 64,
};

/* Maps numbers of a segment to numbers of the recording. */
struct ss_locals {
	SS_VECTOR(uint32_t) items;
};

struct ss_recorded_call {
	int64_t number;
	uint64_t argument;
	const struct ss_wait *wait; /* of the recording; or NULL */
};

/* What the samples of a segment refer to. */
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

/* The recorded part of a process's perf map. */
struct ss_recorded_perf_map {
	uint64_t stable_size; /* offsets in the file */
	uint64_t first;
	bool full;
	struct ss_buffer text;
};

/* A chunk of samples that is being read. */
struct ss_decoder {
	struct ss_cursor at;
	const struct ss_segment *segment;
	struct ss_sample sample; /* of the current tick */
	uint64_t samples_left;
	uint64_t ticks_left;
	int64_t distance;
	uint64_t ready_us; /* of the next sample */
	bool emitted;	   /* a sample of the current tick */
	uint64_t repeats;  /* samples of a REPEAT that are left */
	size_t next;	   /* in list */
	struct ss_listed_vector {
		struct ss_read_entry *items;
		size_t count;
		size_t capacity;
	} list, made;
	uint64_t ticks_read;	   /* since the recording was opened */
	SS_VECTOR(uint64_t) ticks; /* by thread: ticks_read at its last sample */
};

struct ss_recording {
	int fd;
	uint64_t begin; /* offsets in the file */
	uint64_t end;
	struct ss_recording_info info;
	struct ss_intern *strings;
	SS_VECTOR(const char *) labels;
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
	SS_VECTOR(void *) blocks; /* owned: what waits and tasks point to */
	size_t wait_bytes;	  /* of memory that waits take */
	bool waits_full;	  /* wait_bytes has reached its limit */
	SS_VECTOR(struct ss_recorded_coverage) coverage;
	/* In order of their snapshots and kinds; within these, as in the snapshot */
	SS_VECTOR(struct ss_recorded_task) tasks;
	size_t awaited;				      /* by all tasks */
	struct ss_idtable call_wait_ids;	      /* bytes of waits in calls */
	SS_VECTOR(const struct ss_wait *) call_waits; /* by their number */
	struct ss_idtable probe_ids;
	SS_VECTOR(struct ss_recorded_probe) probes;
	SS_VECTOR(struct ss_recorded_event) events;
	SS_VECTOR(uint64_t) event_args;
	struct ss_trace_summary trace; /* its totals */
	bool has_trace;		       /* false: it was cut, or is no trace */
	SS_VECTOR(struct ss_segment) segments;
	size_t locals;		      /* of all segments */
	uint64_t words_read;	      /* of all stacks, including duplicates */
	uint64_t records_read;	      /* of all definitions */
	uint64_t raw_read;	      /* uncompressed bytes of all chunks */
	enum ss_chunk_result refusal; /* why a chunk was rejected */
	SS_VECTOR(struct ss_sample_chunk) chunks;
	struct ss_snapshot *places; /* each place is a stack of one frame */
	SS_VECTOR(struct ss_recorded_perf_map) perf_maps;
	SS_VECTOR(uint32_t) perf_map_numbers; /* + 1, by process; 0: none */
	size_t perf_map_bytes;
	uint32_t *perf_map_of; /* by place */
	bool symbolized;
	struct ss_buffer scratch;
	struct ss_buffer raw;
	size_t next_chunk;
	struct ss_decoder decoder;
};

/* The key of a place, in numbers of the recording. */
struct ss_place_key {
	uint64_t value;
	uint32_t module; /* or SS_ID_NONE */
	uint32_t flags;
	uint32_t area;	  /* text, or 0 */
	uint32_t process; /* without a module: number + 1; 0: not known */
	/* Of the call of a runtime; function and file are texts, or 0 */
	uint32_t kind; /* 0: a native frame */
	uint32_t function;
	uint32_t file;
	uint32_t line;
};

/* The key of a stack is an array of 32-bit numbers. */
enum { SS_STACK_END, SS_STACK_REASON, SS_STACK_PLACES };

/* The numbers of the current segment that only definitions refer to. */
struct ss_scope {
	struct ss_segment *segment;
	struct ss_locals strings;
	struct ss_locals processes;
	struct ss_locals modules;
	struct ss_locals places;
	struct ss_locals probes;
	size_t locals;	      /* of these */
	struct ss_buffer key; /* of the current stack and, before, of the last one */
	struct ss_buffer last;
};

/* Reads the number of a string in the segment. Returns that in the recording; 0: none. */
uint32_t ss_scope_read_text(const struct ss_scope *scope, struct ss_cursor *cursor);

/* Reads a number of the segment. Returns that of the recording; SS_ID_NONE: there is
   none. */
uint32_t ss_locals_read(const struct ss_locals *locals, struct ss_cursor *cursor);
/* Appends a number. all counts the numbers in all lists of this kind. False: it is
   SS_ID_NONE, or a limit is reached. */
bool ss_locals_add(struct ss_recording *recording, struct ss_locals *locals, size_t *all,
		   uint32_t number);

/* The number of a key in a table. Adds a new key if there are fewer than max.
   SS_ID_NONE: rejected. */
uint32_t ss_recording_number(struct ss_recording *recording, struct ss_idtable *table,
			     const void *key, size_t size, size_t max, bool *added);

/* Sets the reason for rejecting a chunk that is not corrupted. Returns false. */
bool ss_recording_refuse(struct ss_recording *recording, enum ss_chunk_result why);

/* Zeroed memory that lives as long as the recording. NULL without memory: refused. */
void *ss_recording_alloc(struct ss_recording *recording, size_t size);

/* Reads the definitions of a chunk. False: corrupted or rejected. */
bool ss_definitions_read(struct ss_recording *recording, struct ss_scope *scope,
			 struct ss_cursor *cursor);

/* Reads the contents of one definition of waits, with the same result. */
bool ss_waits_read(struct ss_recording *recording, struct ss_scope *scope,
		   struct ss_cursor *cursor);

/*
 * A wait in a recording: numbered fields. Those that are zero, NULL or -1 are omitted. A reader
 * skips fields that it does not know.
 */

/* Limit of each list; longer ones are truncated and marked as incomplete. */
enum { SS_WAIT_RECORD_LIST_MAX = 64 };

/* Limit of the memory that all waits of a recording take. */
enum { SS_WAIT_RECORD_BYTES_MAX = 64 << 20 };

/* Appends the fields of a wait. Without memory out->failed is set. */
void ss_wait_record_write(struct ss_buffer *out, const struct ss_wait *wait);

/* Reads fields until the cursor ends. What it points to belongs to the recording. False:
   damaged, no memory, or (recording->waits_full) the limit is reached. */
bool ss_wait_record_read(struct ss_recording *recording, struct ss_cursor *cursor,
			 struct ss_wait *ret);

/* Reads the wait at the end of a call. *ret stays unchanged if there is none. */
bool ss_call_wait_read(struct ss_recording *recording, struct ss_cursor *cursor,
		       const struct ss_wait **ret);

/* Reads a chunk with events of a trace. */
bool ss_events_read(struct ss_recording *recording, const struct ss_scope *scope,
		    struct ss_cursor *cursor);

/* Reads a chunk with a part of a perf map. */
bool ss_perf_map_read(struct ss_recording *recording, const struct ss_scope *scope,
		      struct ss_cursor *cursor);
void ss_perf_maps_free(struct ss_recording *recording);

/* The number of a string, from 1 on; 0: rejected. */
uint32_t ss_recording_text(struct ss_recording *recording, const uint8_t *bytes,
			   size_t size);

/* Prepares the data of the accessors, after the last definition. */
struct ss_error *ss_recording_complete(struct ss_recording *recording);

/* The head of a chunk of samples. False: corrupted. */
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

void ss_decoder_deinit(struct ss_decoder *decoder);

#endif
