/*
 * What the fuzz programs share. Each defines LLVMFuzzerTestOneInput() for bytes that
 * nobody vouches for; libFuzzer calls it with its inventions, replay.c with files.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte of a result, so that sanitizers see what a caller would touch. */
static inline unsigned fuzz_touch(const void *bytes, size_t size)
{
	unsigned sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += ((const volatile uint8_t *)bytes)[i];
	return sum;
}

#define FUZZ_REQUIRE(condition)                                                          \
	do {                                                                             \
		if (!(condition))                                                        \
			__builtin_trap();                                                \
	} while (0)

#endif
