/*
 * The state of a recording's writer. recording_define.c assigns numbers to the objects that the
 * samples of a segment refer to, and encodes their definitions; recording_writer.c decides when
 * to write them.
 */
#ifndef SS_DATA_RECORDING_DEFINE_H
#define SS_DATA_RECORDING_DEFINE_H

#include "base/encode.h"
#include "base/vector.h"
#include "data/recording_chunk.h"
#include "data/recording_format.h"
#include "data/recording_writer.h"
#include "stacksnap/trace.h"

/* A process, thread or module, by its handle. */
struct ss_defined {
	enum { SS_DEFINED_FREE = 0, SS_DEFINED_LIVE, SS_DEFINED_ENDED } state;
	bool needed;	  /* used by a stack of the next segment */
	uint32_t local;	  /* its number in this segment */
	uint32_t process; /* of threads and modules: its handle */
	uint64_t end_ns;
	void *record; /* owned; as in ss_record_schemas, with the number of the process */
};

struct ss_defined_list {
	SS_VECTOR(struct ss_defined) items;
	SS_VECTOR(uint32_t) unused; /* handles */
	uint32_t next_local;
};

/* Called when out is long: writes the records and empties it. */
typedef void ss_definer_full(void *data);

struct ss_definer {
	struct ss_buffer out; /* encoded, not yet written */
	ss_definer_full *full;
	void *full_data;
	struct ss_buffer payload; /* of the current record */
	struct ss_idtable strings;
	struct ss_idtable frames;
	struct ss_idtable stacks;
	struct ss_idtable calls;
	struct ss_defined_list processes;
	struct ss_defined_list threads;
	SS_VECTOR(uint32_t) ended_threads; /* handles */
	struct ss_defined_list modules;
	struct ss_buffer key;  /* of the current stack */
	struct ss_buffer last; /* of the stack that was defined last */
	uint32_t next_probe;   /* number in this segment */
	uint64_t defined_threads;
	uint64_t defined_stacks;
};

struct ss_segment_place {
	uint64_t offset;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
};

struct ss_ring {
	int fd;
	uint64_t size; /* up to the end of the last complete chunk */
	bool broken;   /* no more writes are possible */
	int directory; /* of the file, or -1 */
	char *name;    /* NULL: nothing is dropped */
	uint64_t keep_ns;
	/* Another file, or -1: each segment begins at the start of the other one of the two
	   files, in place of what it contained; name is not used. */
	int other;
	int undropped; /* errno: why old segments could not be dropped; 0: they were */
	SS_VECTOR(struct ss_segment_place) segments;
};

struct ss_writer {
	struct ss_ring ring;
	struct ss_definer definer;
	struct ss_ticks ticks;
	struct ss_buffer events; /* encoded, not yet written */
	uint64_t first_event;	 /* number of the sample of the first one */
	struct ss_buffer packed;
	uint64_t write_ns;
	uint64_t flushed_ns; /* CLOCK_MONOTONIC of the last tick that was written */
	uint64_t segment_ns; /* CLOCK_MONOTONIC of its beginning */
	uint64_t period_ns;
	uint64_t scope;
	size_t memory_max;
	char *machine;
	char *host;
	struct ss_buffer about; /* as it is written to each segment */
	uint64_t tick_count;
	uint64_t missed;
	uint64_t stopped_ns;
	uint64_t stopped_max_ns;
	uint64_t perf_maps;    /* bytes of them in this segment */
	struct ss_error *late; /* of an early chunk; returned by the next call */
};

void ss_definer_deinit(struct ss_definer *definer);

/* Drops the threads that have ended, when their samples are written: no stack needs them, and a process
   may have any number of threads. False: no memory. */
bool ss_definer_forget_threads(struct ss_definer *definer);

/* Begins a segment: defines all objects again that still exist or that the samples
   refer to. False without memory. */
bool ss_definer_renew(struct ss_definer *definer, struct ss_sample_record *samples,
		      size_t count);

size_t ss_definer_memory(const struct ss_definer *definer);

#endif
