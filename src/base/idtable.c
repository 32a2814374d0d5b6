#include "base/intern.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/vector.h"

enum { ALIGNMENT = 8 };

struct query {
	const struct ss_idtable *table;
	const void *key;
	size_t size;
};

static uint64_t hash_of(const struct ss_idtable *table, const void *key, size_t size)
{
	return table->hash ? table->hash(key, size) : XXH3_64bits(key, size);
}

static bool is_same(const void *context, uint32_t id)
{
	const struct query *query = context;
	size_t size;
	const void *key = ss_idtable_key(query->table, id, &size);

	return size == query->size && memcmp(key, query->key, size) == 0;
}

static bool append(struct ss_idtable *table, const void *key, size_t size)
{
	size_t at = (table->byte_count + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);

	if (at / ALIGNMENT >= UINT32_MAX || size > UINT32_MAX ||
	    !ss_vector_reserve_bytes((void **)&table->bytes, &table->byte_capacity,
				     at + size + ALIGNMENT, 1) ||
	    !ss_vector_reserve_bytes((void **)&table->keys, &table->capacity,
				     table->count + 1, sizeof(*table->keys)))
		return false;
	if (size)
		memcpy(table->bytes + at, key, size);
	table->keys[table->count++] = (struct ss_idtable_key){
		.at = (uint32_t)(at / ALIGNMENT),
		.size = (uint32_t)size,
	};
	table->byte_count = at + size;
	return true;
}

uint32_t ss_idtable_add(struct ss_idtable *table, const void *key, size_t size,
			bool *added)
{
	const struct query query = { .table = table, .key = key, .size = size };
	uint64_t hash = hash_of(table, key, size);
	uint32_t id = ss_hash_find(&table->ids, hash, is_same, &query);

	if (added)
		*added = id == SS_ID_NONE;
	if (id != SS_ID_NONE)
		return id;
	if (!ss_hash_reserve(&table->ids) || !append(table, key, size)) {
		if (added)
			*added = false;
		return SS_ID_NONE;
	}
	id = (uint32_t)table->count - 1;
	ss_hash_insert(&table->ids, hash, id);
	return id;
}

uint32_t ss_idtable_find(const struct ss_idtable *table, const void *key, size_t size)
{
	const struct query query = { .table = table, .key = key, .size = size };

	return ss_hash_find(&table->ids, hash_of(table, key, size), is_same, &query);
}

const void *ss_idtable_key(const struct ss_idtable *table, uint32_t id, size_t *size)
{
	const struct ss_idtable_key *key = &table->keys[id];

	if (size)
		*size = key->size;
	return table->bytes + (size_t)key->at * ALIGNMENT;
}

size_t ss_idtable_memory(const struct ss_idtable *table)
{
	return table->byte_capacity + table->capacity * sizeof(*table->keys) +
	       table->ids.slot_count * sizeof(*table->ids.slots);
}

void ss_idtable_deinit(struct ss_idtable *table)
{
	ss_hash_deinit(&table->ids);
	free(table->keys);
	free(table->bytes);
	*table = (struct ss_idtable){ .hash = table->hash };
}
