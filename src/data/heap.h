/*
 * What the census of a heap found, as its readers share it: see struct ss_heap in
 * stacksnap.h.
 */
#ifndef SS_DATA_HEAP_H
#define SS_DATA_HEAP_H

#include "base/intern.h"
#include "base/vector.h"
#include "data/capture.h"

/* Memory that malloc(3) has taken from the kernel in one piece or in several. */
struct ss_heap_arena {
	uint64_t address; /* of its description (struct malloc_state) */
	bool main;
	uint64_t size; /* bytes that it has from the kernel, as malloc counts them */
	/* Chunks, each with 8 bytes of its own: allocations; free ones that are kept for
	   quick use (in per-thread caches and fastbins); other free ones. */
	uint64_t used_count, used_bytes;
	uint64_t cached_count, cached_bytes;
	uint64_t free_count, free_bytes;
	uint64_t top_bytes;    /* never used, or given back, at its end */
	uint64_t unread_bytes; /* could not be read; problem says why */
	const char *problem;   /* a constant, or NULL */
};

/* Allocations whose usable sizes are from min to max. */
struct ss_heap_size {
	uint64_t min, max;
	uint64_t count, bytes; /* of chunks */
};

/* Allocations that begin with a pointer to the same place of a module: objects of a C++ class
   with virtual functions. */
struct ss_heap_class {
	uint64_t address;   /* of its table of virtual functions */
	const char *module; /* path */
	const char *name; /* set by ss_heap_symbolize(); NULL: it is none, or not known */
	uint64_t count, bytes; /* of chunks */
};

/*
 * A census of the heap of glibc's malloc(3). The process runs while it is taken: what
 * changed meanwhile may be counted as it was, as it is, or not at all. Take two and compare
 * them to learn how much that is.
 */
struct ss_heap {
	const struct ss_process *process;
	const char *allocator; /* path of the module that has malloc's data */
	const char *other;     /* of a module with another allocator, or NULL */
	const struct ss_heap_arena *arenas;
	size_t arena_count;
	const struct ss_heap_size *sizes; /* ascending, only those with allocations */
	size_t size_count;
	const struct ss_heap_class *classes; /* by bytes, descending */
	size_t class_count;
	bool classes_truncated; /* there were too many to count */
	/* Allocations with a mapping of their own: those found, and, if malloc's counters were
	   found (counted), as malloc counts them. */
	uint64_t mapped_count, mapped_bytes;
	bool counted;
	uint64_t counted_maps, counted_map_bytes;
	uint64_t used_count, used_bytes; /* of all arenas, and mapped ones */
};

/*
 * Reads the heap of a process with read, read_ranges and data, as a reader of
 * ss_late_reader_new(). All that is read is untrusted input: call it in ss_sandbox_run(). capture
 * says where modules and memory areas are, and must outlive the result. Errors: UNSUPPORTED (no
 * glibc, or malloc was not used), NO_MEMORY.
 */
struct ss_error *ss_heap_read(const struct ss_capture *capture,
			      struct ss_session *session, ss_memory_read_function *read,
			      ss_memory_read_ranges_function *read_ranges, void *data,
			      struct ss_heap **ret);
void ss_heap_free(struct ss_heap *heap);

/* Names the classes, by symbols or by their run-time type information. Errors: NO_MEMORY. */
struct ss_error *ss_heap_symbolize(struct ss_heap *heap, struct ss_session *session);

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
