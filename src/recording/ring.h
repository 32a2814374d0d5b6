/*
 * The file of a recording, from which old segments may be dropped: the rest is copied to
 * a new file, which then replaces the old one. The name always refers to a complete
 * recording.
 */
#ifndef SS_RECORDING_RING_H
#define SS_RECORDING_RING_H

#include "base/error.h"
#include "base/vector.h"
#include "base/encode.h"

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

void ss_ring_deinit(struct ss_ring *ring);

/* Appends complete chunks. On failure the file ends with the previous chunk. Errors:
   SYSTEM. */
struct ss_error *ss_ring_append(struct ss_ring *ring, const struct ss_buffer *bytes);

/* Begins a segment at the end of the file and drops segments that are too old. If that
   fails (the disk is full), they remain, and undropped has the errno. Errors:
   NO_MEMORY. */
struct ss_error *ss_ring_begin_segment(struct ss_ring *ring, uint64_t monotonic_ns);

#endif
