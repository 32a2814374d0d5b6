/*
 * A hash table from hashes to the indexes of a list that the caller keeps: the table
 * holds no keys and never frees anything but its slots. A zeroed struct is an empty
 * table. Open addressing with linear probing; at most half of the slots are in use.
 *
 *	uint32_t index = ss_hash_find(&table, hash, is_same, &query);
 *	if (index == SS_HASH_NONE && ss_hash_reserve(&table)) {
 *		... append to the list ...
 *		ss_hash_insert(&table, hash, index_in_the_list);
 *	}
 */
#ifndef SS_BASE_HASH_H
#define SS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_hash_slot {
	uint32_t tag;	/* 32 bits of the hash */
	uint32_t index; /* index + 1; 0: free */
};

struct ss_hash {
	struct ss_hash_slot *slots;
	size_t slot_count; /* a power of two, or 0 */
	size_t count;
};

#define SS_HASH_NONE UINT32_MAX

/* Whether the item at index is the one that context describes. */
typedef bool ss_hash_equal_function(const void *context, uint32_t index);

/* Tables have at most 2^32 slots, so 32 bits of the hash place a slot. The multiplication
   (by 2^64 / the golden ratio) makes weak hashes, such as addresses, fit for use. */
static inline uint32_t ss_hash_tag(uint64_t hash)
{
	return (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* The index that was inserted with this hash and for which equal() is true, or
   SS_HASH_NONE. */
static inline uint32_t ss_hash_find(const struct ss_hash *table, uint64_t hash,
				    ss_hash_equal_function *equal, const void *context)
{
	uint32_t tag = ss_hash_tag(hash);
	size_t mask = table->slot_count - 1;

	if (table->slot_count == 0)
		return SS_HASH_NONE;
	for (size_t i = tag & mask; table->slots[i].index; i = (i + 1) & mask) {
		const struct ss_hash_slot *slot = &table->slots[i];
		if (slot->tag == tag && equal(context, slot->index - 1))
			return slot->index - 1;
	}
	return SS_HASH_NONE;
}

/* Makes room for one more index. False: no memory, or the table has 2^31 already. */
bool ss_hash_reserve(struct ss_hash *table);

/* Inserts an index that the table does not have. ss_hash_reserve() has made room. */
void ss_hash_insert(struct ss_hash *table, uint64_t hash, uint32_t index);

void ss_hash_deinit(struct ss_hash *table);

#endif
