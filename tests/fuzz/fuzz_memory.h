/*
 * The bytes of an input as memory of a process.
 */
#ifndef FUZZ_MEMORY_H
#define FUZZ_MEMORY_H

#include <string.h>

#include "base/cleanup.h"
#include "data/memory.h"

/* Copies what from has at the offset; returns how much. */
static inline size_t fuzz_copy(void *ret, size_t size, const void *from, size_t from_size,
			       uint64_t offset)
{
	if (offset >= from_size)
		return 0;
	size = SS_MIN(size, from_size - (size_t)offset);
	memcpy(ret, (const uint8_t *)from + offset, size);
	return size;
}

struct fuzz_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	uint64_t base;
	const uint8_t *data;
	size_t size;
};

static inline size_t fuzz_memory_read(const struct ss_memory *memory, uint64_t address,
				      void *bytes, size_t size)
{
	const struct fuzz_memory *self = (const struct fuzz_memory *)memory;

	return fuzz_copy(bytes, size, self->data, self->size, address - self->base);
}

static inline struct fuzz_memory fuzz_memory(uint64_t base, const uint8_t *data,
					     size_t size)
{
	return (struct fuzz_memory){
		.memory.read = fuzz_memory_read, .base = base, .data = data, .size = size
	};
}

#endif
