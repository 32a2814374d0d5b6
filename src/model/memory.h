/*
 * Memory of a process behind a read function, whatever its source: the bytes of a
 * capture, a core file, a live process within limits. Code that interprets memory
 * (unwinders, runtimes, lock layouts) takes a struct ss_memory and nothing else.
 *
 * To add a back end: embed struct ss_memory as the first member of a struct, set read,
 * and hand out a pointer to that member. read gets back the same pointer.
 */
#ifndef SS_MODEL_MEMORY_H
#define SS_MODEL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_memory {
	/*
 * Copies a prefix of the size bytes at address and returns its length. Short reads are
 * normal; 0 means that nothing is readable there. Ranges that extend past the end of the
 * address space are allowed.
 */
	size_t (*read)(const struct ss_memory *memory, uint64_t address, void *bytes,
		       size_t size);
};

/* One of several ranges that are read together. */
struct ss_piece {
	uint64_t address; /* in the process */
	void *bytes;	  /* where they are copied to */
	size_t size;
	size_t done;   /* result: the length of the prefix that could be copied */
	bool sparse;   /* private anonymous memory: what was never touched reads as 0 */
	bool unmapped; /* in no known mapping: read without asking what is present */
	bool waits;    /* result: it ends where a read could wait for others */
};

/* Reads exactly size bytes. On failure the content of bytes is unspecified. */
bool ss_memory_read(const struct ss_memory *memory, uint64_t address, void *bytes,
		    size_t size);

/* Read one integer in the byte order of this machine. On failure ret is untouched. */
bool ss_memory_read_u32(const struct ss_memory *memory, uint64_t address, uint32_t *ret);
bool ss_memory_read_u64(const struct ss_memory *memory, uint64_t address, uint64_t *ret);

/*
 * Reads a NUL-terminated string of less than capacity bytes into ret. False if it is
 * longer or unreadable; ret is then an empty string. capacity must not be 0.
 */
bool ss_memory_read_string(const struct ss_memory *memory, uint64_t address, char *ret,
			   size_t capacity);

#endif
