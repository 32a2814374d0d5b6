#include "data/memory.h"

#include <string.h>

bool ss_memory_read(const struct ss_memory *memory, uint64_t address, void *bytes,
		    size_t size)
{
	return memory->read(memory, address, bytes, size) == size;
}

bool ss_memory_read_u32(const struct ss_memory *memory, uint64_t address, uint32_t *ret)
{
	uint32_t value;

	if (!ss_memory_read(memory, address, &value, sizeof(value)))
		return false;
	*ret = value;
	return true;
}

bool ss_memory_read_u64(const struct ss_memory *memory, uint64_t address, uint64_t *ret)
{
	uint64_t value;

	if (!ss_memory_read(memory, address, &value, sizeof(value)))
		return false;
	*ret = value;
	return true;
}

bool ss_memory_read_string(const struct ss_memory *memory, uint64_t address, char *ret,
			   size_t capacity)
{
	size_t n = memory->read(memory, address, ret, capacity);

	if (memchr(ret, '\0', n))
		return true;
	ret[0] = '\0';
	return false;
}
