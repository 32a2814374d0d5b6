/*
 * Walks the chunks of a range of glibc's heap while the process runs, and tells each to a
 * function. A chunk that is inconsistent with the next one was changed meanwhile; then the
 * walk goes on where chunks are consistent again, and what lies between is not read.
 */
#ifndef SS_RUNTIME_GLIBC_CHUNKS_H
#define SS_RUNTIME_GLIBC_CHUNKS_H

#include "model/memory.h"

struct ss_glibc_chunk {
	uint64_t address;
	uint64_t size;
	bool free;	/* in a list of its arena that merges neighbours */
	uint64_t first; /* word of an allocation */
};

typedef void ss_glibc_chunk_function(void *data, const struct ss_glibc_chunk *chunk);

/* Bytes of memory in sequence; reads many at once if they are wanted one after the other. */
enum { SS_GLIBC_WINDOW = 28 << 10 };

struct ss_glibc_window {
	const struct ss_memory *memory;
	uint64_t start;
	size_t size;
	uint8_t bytes[SS_GLIBC_WINDOW];
};

struct ss_glibc_walk {
	struct ss_glibc_window *window;
	uint64_t start;
	uint64_t end; /* of a chunk, or of the heap */
	bool open;    /* a heap that need not be full: it ends at a mark */
	ss_glibc_chunk_function *tell;
	void *data;
	/* Result: bytes that could not be read, and why (a constant) */
	uint64_t unread;
	const char *problem;
};

void ss_glibc_walk(struct ss_glibc_walk *walk);

/* Reads count words. False: they are not in memory. */
bool ss_glibc_window_read(struct ss_glibc_window *window, uint64_t address,
			  uint64_t *words, size_t count);

#endif
