/*
 * What the census of a heap found, as its readers share it: see struct ss_heap in
 * stacksnap.h.
 */
#ifndef SS_DATA_HEAP_H
#define SS_DATA_HEAP_H

#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"

/* What ss_heap_symbolize() needs of a class. */
struct ss_heap_origin {
	int32_t module;	  /* index into the modules of the capture */
	const char *type; /* mangled, from its type information; NULL: unknown */
};

struct ss_heap_impl {
	struct ss_heap pub; /* its arrays are the next members */
	const struct ss_capture *capture;
	struct ss_intern *strings;
	SS_VECTOR(struct ss_heap_arena) arenas;
	SS_VECTOR(struct ss_heap_size) sizes;
	SS_VECTOR(struct ss_heap_class) classes;
	SS_VECTOR(struct ss_heap_origin) origins; /* one for each class */
};

SS_DEFINE_CLEANUP(struct ss_heap, ss_heap, ss_heap_free)

#endif
