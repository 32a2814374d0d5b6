/*
 * Numbers for things that are equal byte for byte: the first gets 0, the next other one
 * 1, and so on. Found by a 64-bit hash and then compared as a whole: things of equal
 * hashes are never taken for each other.
 */
#ifndef SS_RECORD_IDTABLE_H
#define SS_RECORD_IDTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t ss_hash_function(const void *key, size_t size);

struct ss_idtable_entry {
	uint64_t hash;
	uint32_t at; /* in keys, in words of 8 bytes */
	uint32_t size;
};

struct ss_idtable {
	ss_hash_function *hash; /* NULL: XXH3; another one for tests */
	struct ss_idtable_entry *items;
	size_t count;
	size_t capacity;
	uint8_t *keys; /* one after the other, aligned to 8 */
	size_t key_count;
	size_t key_capacity;
	uint32_t *slots; /* id + 1 */
	size_t slot_count;
};

enum { SS_ID_NONE = UINT32_MAX };

void ss_idtable_clear(struct ss_idtable *table);

/* The number of a thing of size bytes, a new one if *added. SS_ID_NONE: no memory, or
   32 GiB of keys. key may point into nothing that belongs to the table. */
uint32_t ss_idtable_get(struct ss_idtable *table, const void *key, size_t size,
			bool *added);

/* The bytes of one. Valid until the next ss_idtable_get(). */
const void *ss_idtable_key(const struct ss_idtable *table, uint32_t id, size_t *size);

/* Bytes of memory that it takes. */
size_t ss_idtable_memory(const struct ss_idtable *table);

#endif
