/*
 * The data of glibc's malloc(3) on 64-bit processors: its arenas (struct malloc_state) and
 * counters (struct malloc_par), found by what they contain. Names of symbols are not needed,
 * which stripped libraries lack.
 *
 * Source: malloc/malloc.c and malloc/arena.c of glibc 2.23 to 2.42. What these versions
 * differ in, such as members before the bins and the size of heap_info, is measured.
 */
#ifndef SS_HEAP_MALLOC_H
#define SS_HEAP_MALLOC_H

#include "base/vector.h"
#include "data/capture.h"
#include "data/memory.h"

enum {
	SS_GLIBC_WORD = 8,
	SS_GLIBC_ALIGNMENT = 16, /* of chunks */
	SS_GLIBC_HEADER = 16,	 /* of a chunk: previous size, and its size */
	SS_GLIBC_FASTBINS = 10,
	/* Bits in the size of a chunk. */
	SS_GLIBC_PREVIOUS_IN_USE = 1,
	SS_GLIBC_IS_MAPPED = 2,
	SS_GLIBC_NOT_MAIN = 4, /* of another arena than the main one */
	SS_GLIBC_FLAGS = 7,
	/* The heaps of all arenas but the main one are aligned to this size. */
	SS_GLIBC_HEAP = 64 << 20,
};

struct ss_glibc_arena {
	uint64_t address;		      /* of its struct malloc_state */
	uint64_t end;			      /* of that */
	uint64_t top;			      /* the last chunk */
	uint64_t size;			      /* bytes from the kernel */
	uint64_t fastbins[SS_GLIBC_FASTBINS]; /* the first chunk of each list, or 0 */
};

/* A mapping of a part of an arena that is not the main one. */
struct ss_glibc_heap {
	uint64_t address;
	uint64_t previous; /* or 0 */
	uint64_t end;
};

struct ss_glibc_malloc {
	const struct ss_memory *memory;
	int32_t module;				 /* that has its data */
	SS_VECTOR(struct ss_glibc_arena) arenas; /* the main one first */
	uint64_t heap_header; /* bytes before the first chunk of a heap */
	uint64_t main_start;  /* of the chunks of the main arena; 0: not known */
	bool counted;	      /* the next two are known */
	uint64_t maps, map_bytes;
};

/* Finds the data. memory must outlive it. *ret_found: whether it is there. False without memory. */
bool ss_glibc_malloc_open(const struct ss_capture *capture,
			  const struct ss_memory *memory, struct ss_glibc_malloc *ret,
			  bool *ret_found);
void ss_glibc_malloc_close(struct ss_glibc_malloc *malloc);

/* Reads the description of the heap that contains an address of this arena. False: it is
   none. */
bool ss_glibc_heap_read(const struct ss_glibc_malloc *malloc,
			const struct ss_glibc_arena *arena, uint64_t address,
			struct ss_glibc_heap *ret);

/*
 * Walks the chunks of a range of glibc's heap while the process runs, and tells each to a
 * function. A chunk that is inconsistent with the next one was changed meanwhile; then the
 * walk goes on where chunks are consistent again, and what lies between is not read.
 */

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
