#include "base/hash.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 64 };
#define SLOTS_MAX (UINT64_C(1) << 32)

static void place(struct ss_hash_slot *slots, size_t slot_count,
		  const struct ss_hash_slot *slot)
{
	size_t mask = slot_count - 1;
	size_t i = slot->tag & mask;

	while (slots[i].index)
		i = (i + 1) & mask;
	slots[i] = *slot;
}

bool ss_hash_reserve(struct ss_hash *table)
{
	if (table->count < table->slot_count / 2)
		return true;
	if (table->slot_count >= SLOTS_MAX)
		return false;
	size_t slot_count = table->slot_count ? table->slot_count * 2 : FIRST_SLOTS;
	struct ss_hash_slot *slots = calloc(slot_count, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < table->slot_count; i++) {
		if (table->slots[i].index)
			place(slots, slot_count, &table->slots[i]);
	}
	free(table->slots);
	table->slots = slots;
	table->slot_count = slot_count;
	return true;
}

void ss_hash_insert(struct ss_hash *table, uint64_t hash, uint32_t index)
{
	const struct ss_hash_slot slot = { .tag = ss_hash_tag(hash), .index = index + 1 };

	place(table->slots, table->slot_count, &slot);
	table->count++;
}

void ss_hash_deinit(struct ss_hash *table)
{
	free(table->slots);
	*table = (struct ss_hash){};
}
