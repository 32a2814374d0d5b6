/*
 * Keeps each thing once: keys, which get numbers, and strings, which get an address.
 */
#ifndef SS_BASE_INTERN_H
#define SS_BASE_INTERN_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/hash.h"

/*
 * Numbers for keys: equal keys, byte for byte, have the same number, and new keys are
 * numbered 0, 1, and so on. Keys that are structs must have no padding. Equal hashes
 * never suffice: keys are compared as a whole. A zeroed struct is an empty table.
 */

typedef uint64_t ss_hash_function(const void *key, size_t size);

struct ss_idtable_key {
	uint32_t at; /* in bytes, in units of 8 bytes */
	uint32_t size;
};

struct ss_idtable {
	ss_hash_function *hash; /* NULL: XXH3; tests inject poor ones */
	struct ss_hash ids;
	struct ss_idtable_key *keys; /* by number */
	size_t count;
	size_t capacity;
	uint8_t *bytes; /* of the keys, one after the other, aligned to 8 */
	size_t byte_count;
	size_t byte_capacity;
};

#define SS_ID_NONE SS_HASH_NONE

/* The number of a key, which is added if it is new (*added, which may be NULL).
   SS_ID_NONE: no memory, or 32 GiB of keys. The key must not lie in the table. */
uint32_t ss_idtable_add(struct ss_idtable *table, const void *key, size_t size,
			bool *added);

/* The number of a key, or SS_ID_NONE: it was not added. */
uint32_t ss_idtable_find(const struct ss_idtable *table, const void *key, size_t size);

/* The key of a number. Valid until the next ss_idtable_add(). size may be NULL. */
const void *ss_idtable_key(const struct ss_idtable *table, uint32_t id, size_t *size);

/* Bytes of memory in use. */
size_t ss_idtable_memory(const struct ss_idtable *table);

/* Frees everything but the hash function. */
void ss_idtable_deinit(struct ss_idtable *table);

/*
 * A pool that keeps each string once. Strings stay at the same address until the pool is
 * freed, and equal strings have equal addresses.
 */

struct ss_intern;

/* NULL without memory. */
struct ss_intern *ss_intern_new(void);
void ss_intern_free(struct ss_intern *pool);

/* The pool's NUL-terminated copy of the first size bytes of text, which contain no NUL. NULL
   without memory. */
const char *ss_intern_bytes(struct ss_intern *pool, const char *text, size_t size);
const char *ss_intern_string(struct ss_intern *pool, const char *text);

SS_DEFINE_CLEANUP(struct ss_intern, ss_intern, ss_intern_free)

#endif
