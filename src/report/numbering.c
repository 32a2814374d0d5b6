#include "report/numbering.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_SLOTS = 256 };

static uint32_t *find(const struct ss_numbering *n, const void *key)
{
	size_t mask = n->slot_count - 1;
	size_t i = XXH3_64bits(key, n->key_size) & mask;

	while (n->slots[i] &&
	       memcmp(ss_numbering_key(n, n->slots[i] - 1), key, n->key_size) != 0)
		i = (i + 1) & mask;
	return &n->slots[i];
}

static bool grow_slots(struct ss_numbering *n)
{
	size_t count = n->slot_count ? n->slot_count * 2 : FIRST_SLOTS;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	free(n->slots);
	n->slots = slots;
	n->slot_count = count;
	for (size_t i = 0; i < n->count; i++)
		*find(n, ss_numbering_key(n, (uint32_t)i)) = (uint32_t)i + 1;
	return true;
}

static bool grow_keys(struct ss_numbering *n)
{
	size_t capacity = n->capacity ? n->capacity * 2 : FIRST_SLOTS / 2;
	uint8_t *keys = reallocarray(n->keys, capacity, n->key_size);

	if (!keys)
		return false;
	n->keys = keys;
	n->capacity = capacity;
	return true;
}

uint32_t ss_numbering_find(const struct ss_numbering *n, const void *key)
{
	uint32_t slot = n->count ? *find(n, key) : 0;

	return slot ? slot - 1 : SS_NUMBER_NOT;
}

uint32_t ss_numbering_get(struct ss_numbering *n, const void *key)
{
	if (n->count * 2 >= n->slot_count && !grow_slots(n))
		return SS_NUMBER_NOT;
	uint32_t *slot = find(n, key);
	if (*slot)
		return *slot - 1;
	if (n->count >= SS_NUMBER_NOT - 1 || (n->count == n->capacity && !grow_keys(n)))
		return SS_NUMBER_NOT;
	memcpy(n->keys + n->count * n->key_size, key, n->key_size);
	*slot = (uint32_t)++n->count;
	return *slot - 1;
}

void ss_numbering_deinit(struct ss_numbering *n)
{
	free(n->keys);
	free(n->slots);
	*n = (struct ss_numbering){ .key_size = n->key_size };
}
