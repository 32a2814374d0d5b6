/*
 * Places in files of builds, as a snapshot that can be named.
 */
#ifndef SS_DATA_PLACES_H
#define SS_DATA_PLACES_H

#include "stacksnap.h"

/* A place in the file of a build: an ELF virtual address within an instruction. */
struct ss_place {
	const char *build_id; /* lower-case hexadecimal */
	const char *path;     /* where its file may be found; or NULL */
	uint64_t offset;
};

/*
 * Makes a snapshot of places, to be named by ss_snapshot_symbolize(): its thread with index i
 * has the frame of place i, and then the calls inlined there. Errors: INVALID (a build-id; too
 * many), NO_MEMORY.
 */
struct ss_error *ss_snapshot_new_places(const struct ss_place *places, size_t count,
					struct ss_snapshot **ret);

#endif
