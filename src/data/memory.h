/*
 * Memory of a process behind a read function, whatever its source: the bytes of a
 * capture, a core file, a live process within limits. Code that interprets memory
 * (unwinders, runtimes, lock layouts) takes a struct ss_memory and nothing else.
 *
 * To add a back end: embed struct ss_memory as the first member of a struct, set read,
 * and hand out a pointer to that member. read gets back the same pointer.
 */
#ifndef SS_DATA_MEMORY_H
#define SS_DATA_MEMORY_H

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

/* Why less than all of a piece was read. */
enum ss_piece_end {
	SS_PIECE_COMPLETE,
	SS_PIECE_UNREADABLE,
	SS_PIECE_ABSENT, /* a page is not in memory */
	SS_PIECE_LATE,	 /* the deadline has passed */
};

/* One of several ranges that are read together. */
struct ss_piece {
	uint64_t address; /* in the process */
	void *bytes;	  /* where they are copied to */
	size_t size;
	size_t done; /* result: the length of the prefix that could be copied */
	/*
	 * One bit for each page that it is in, initially 0; pages that are not in memory
	 * are noted there and read as 0: private anonymous memory that was never touched,
	 * or that a userfaultfd provides. NULL: the piece ends at such a page.
	 */
	uint8_t *absent;
	bool zeroed;	       /* bytes are 0: those of absent pages stay untouched */
	bool has_absent;       /* result */
	enum ss_piece_end end; /* result of ss_process_memory_read_present() */
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
