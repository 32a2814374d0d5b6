/*
 * Loads integers from bytes at any alignment, in the byte order of this machine. The caller
 * has checked that the bytes are there.
 */
#ifndef SS_BASE_LOAD_H
#define SS_BASE_LOAD_H

#include <stdint.h>
#include <string.h>

static inline uint64_t ss_load_u64(const void *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, (const char *)bytes + at, sizeof(value));
	return value;
}

#endif
