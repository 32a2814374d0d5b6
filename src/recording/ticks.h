/*
 * Encodes the samples of one chunk. Each tick is written as changes since the previous
 * tick: most threads of a server are idle.
 */
#ifndef SS_RECORDING_TICKS_H
#define SS_RECORDING_TICKS_H

#include "base/vector.h"
#include "base/encode.h"
#include "recording/format.h"
#include "recording/writer.h"

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
