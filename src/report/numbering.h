/*
 * Numbers for keys of one fixed size: equal keys, byte for byte, have equal numbers,
 * which count from 0. Keys must have no padding.
 */
#ifndef SS_REPORT_NUMBERING_H
#define SS_REPORT_NUMBERING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_numbering {
	size_t key_size;
	uint8_t *keys; /* count of them, by number */
	size_t count;
	size_t capacity;
	uint32_t *slots; /* number + 1 */
	size_t slot_count;
};

#define SS_NUMBER_NOT UINT32_MAX

/* The number of key, a new one where it was not met before. SS_NUMBER_NOT: no memory, or
   four thousand million of them. */
uint32_t ss_numbering_get(struct ss_numbering *numbering, const void *key);

/* The number of key; SS_NUMBER_NOT: it was not met before. */
uint32_t ss_numbering_find(const struct ss_numbering *numbering, const void *key);

static inline const void *ss_numbering_key(const struct ss_numbering *numbering,
					   uint32_t number)
{
	return numbering->keys + (size_t)number * numbering->key_size;
}

void ss_numbering_deinit(struct ss_numbering *numbering);

#endif
