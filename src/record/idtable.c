#include "record/idtable.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/vector.h"

enum { FIRST_SLOTS = 64, ALIGNMENT = 8 };

void ss_idtable_clear(struct ss_idtable *table)
{
	free(table->items);
	free(table->keys);
	free(table->slots);
	*table = (struct ss_idtable){ .hash = table->hash };
}

static uint64_t hash_of(const struct ss_idtable *table, const void *key, size_t size)
{
	return table->hash ? table->hash(key, size) : XXH3_64bits(key, size);
}

/* The slot of a thing, or the free one where it belongs. */
static uint32_t *find(const struct ss_idtable *table, const void *key, size_t size,
		      uint64_t hash)
{
	size_t mask = table->slot_count - 1;
	size_t i = hash & mask;

	for (; table->slots[i]; i = (i + 1) & mask) {
		const struct ss_idtable_entry *e = &table->items[table->slots[i] - 1];
		if (e->hash == hash && e->size == size &&
		    memcmp(table->keys + (size_t)e->at * ALIGNMENT, key, size) == 0)
			break;
	}
	return &table->slots[i];
}

static bool grow_slots(struct ss_idtable *table)
{
	if (table->count * 2 < table->slot_count)
		return true;
	size_t count = table->slot_count ? table->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(count, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t id = 0; id < table->count; id++) {
		size_t i = table->items[id].hash & (count - 1);
		while (slots[i])
			i = (i + 1) & (count - 1);
		slots[i] = (uint32_t)id + 1;
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = count;
	return true;
}

static bool add(struct ss_idtable *table, const void *key, size_t size, uint64_t hash)
{
	size_t at = (table->key_count + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

	if (at / ALIGNMENT >= UINT32_MAX || size > UINT32_MAX ||
	    table->count + 1 >= SS_ID_NONE ||
	    !ss_vector_reserve_bytes((void **)&table->keys, &table->key_capacity,
				     at + size + ALIGNMENT, 1) ||
	    !ss_vector_reserve_bytes((void **)&table->items, &table->capacity,
				     table->count + 1, sizeof(*table->items)))
		return false;
	if (size)
		memcpy(table->keys + at, key, size);
	table->items[table->count++] = (struct ss_idtable_entry){
		.hash = hash, .at = (uint32_t)(at / ALIGNMENT), .size = (uint32_t)size
	};
	table->key_count = at + size;
	return true;
}

uint32_t ss_idtable_get(struct ss_idtable *table, const void *key, size_t size,
			bool *added)
{
	uint64_t hash = hash_of(table, key, size);

	*added = false;
	if (!grow_slots(table))
		return SS_ID_NONE;
	uint32_t *slot = find(table, key, size, hash);
	if (!*slot) {
		if (!add(table, key, size, hash))
			return SS_ID_NONE;
		*added = true;
		*slot = (uint32_t)table->count;
	}
	return *slot - 1;
}

const void *ss_idtable_key(const struct ss_idtable *table, uint32_t id, size_t *size)
{
	const struct ss_idtable_entry *e = &table->items[id];

	*size = e->size;
	return table->keys + (size_t)e->at * ALIGNMENT;
}

size_t ss_idtable_memory(const struct ss_idtable *table)
{
	return table->key_capacity + table->capacity * sizeof(*table->items) +
	       table->slot_count * sizeof(*table->slots);
}
