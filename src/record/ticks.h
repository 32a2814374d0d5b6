/*
 * Samples of one chunk as bytes. Each tick is written as what has changed since the tick
 * before: most threads of a server stand where they stood.
 */
#ifndef SS_RECORD_TICKS_H
#define SS_RECORD_TICKS_H

#include "base/vector.h"
#include "record/bytes.h"
#include "record/format.h"
#include "record/writer.h"

/* What the chunk says last of a thread. */
struct ss_listed {
	uint32_t thread; /* handle */
	uint32_t stack;
	uint32_t call;
	char state;
};

struct ss_ticks {
	struct ss_bytes out;
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
	SS_VECTOR(uint32_t) places; /* by handle: where it is in list, + 1 */
};

void ss_ticks_deinit(struct ss_ticks *ticks);

/* locals: the number of a thread in this segment, by its handle. False: no memory. */
typedef uint32_t ss_local_thread(const void *data, uint32_t handle);
bool ss_ticks_add(struct ss_ticks *ticks, const struct ss_written_tick *tick,
		  const struct ss_written_sample *samples, size_t count,
		  ss_local_thread *local, const void *data);

/* The contents of a chunk: its head and then out. */
void ss_ticks_put(const struct ss_ticks *ticks, struct ss_bytes *ret);

/* Forgets what was written, and the list: the next tick begins a chunk. */
void ss_ticks_reset(struct ss_ticks *ticks);

#endif
