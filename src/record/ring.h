/*
 * The file of a recording, of which perhaps only the newest segments are kept. At any
 * moment there is a whole recording under its name: what is dropped is left out of a
 * copy, which then takes the name.
 */
#ifndef SS_RECORD_RING_H
#define SS_RECORD_RING_H

#include "base/error.h"
#include "base/vector.h"
#include "record/bytes.h"

struct ss_segment_place {
	uint64_t offset;
	uint64_t begin_ns; /* CLOCK_MONOTONIC */
};

struct ss_ring {
	int fd;
	uint64_t size; /* up to the last whole chunk */
	bool broken;   /* nothing more can be written */
	int directory; /* where it is, or -1 */
	char *name;    /* NULL: everything is kept */
	uint64_t keep_ns;
	int undropped; /* errno: why what is too old is still there; 0: it is not */
	SS_VECTOR(struct ss_segment_place) segments;
};

void ss_ring_deinit(struct ss_ring *ring);

/* Appends bytes that are whole chunks. If that fails the file ends with the chunk
   before. Errors: SYSTEM. */
struct ss_error *ss_ring_append(struct ss_ring *ring, const struct ss_bytes *bytes);

/* A segment begins where the file ends. Those that are not needed are dropped; if that
   fails (the disk is full) they stay, and undropped says why. Errors: NO_MEMORY. */
struct ss_error *ss_ring_begin_segment(struct ss_ring *ring, uint64_t monotonic_ns);

#endif
