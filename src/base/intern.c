#include "base/intern.h"

#include <stdint.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/vector.h"

struct entry {
	uint64_t hash;
	const char *text; /* NULL: free slot */
	size_t size;
};

/* Strings live in blocks that never move; open addressing over their hashes. */
struct ss_intern {
	struct entry *slots;
	size_t slot_count; /* a power of two */
	size_t used;
	SS_VECTOR(char *) blocks;
	size_t block_used;
	size_t block_size;
};

enum { FIRST_SLOTS = 256, BLOCK_SIZE = 64 * 1024 };

struct ss_intern *ss_intern_new(void)
{
	struct ss_intern *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->slots = calloc(FIRST_SLOTS, sizeof(*pool->slots));
	pool->slot_count = FIRST_SLOTS;
	if (!pool->slots) {
		free(pool);
		return NULL;
	}
	return pool;
}

void ss_intern_free(struct ss_intern *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < pool->blocks.count; i++)
		free(pool->blocks.items[i]);
	ss_vector_free(&pool->blocks);
	free(pool->slots);
	free(pool);
}

static struct entry *find_slot(struct entry *slots, size_t slot_count, uint64_t hash,
			       const char *text, size_t size)
{
	for (size_t i = hash & (slot_count - 1);; i = (i + 1) & (slot_count - 1)) {
		struct entry *e = &slots[i];
		if (!e->text || (e->hash == hash && e->size == size &&
				 memcmp(e->text, text, size) == 0))
			return e;
	}
}

static bool grow(struct ss_intern *pool)
{
	size_t slot_count = pool->slot_count * 2;
	struct entry *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return false;
	for (size_t i = 0; i < pool->slot_count; i++) {
		struct entry *e = &pool->slots[i];
		if (e->text)
			*find_slot(slots, slot_count, e->hash, e->text, e->size) = *e;
	}
	free(pool->slots);
	pool->slots = slots;
	pool->slot_count = slot_count;
	return true;
}

static char *copy_text(struct ss_intern *pool, const char *text, size_t size)
{
	if (pool->block_used + size + 1 > pool->block_size) {
		size_t block_size = SS_MAX(size + 1, (size_t)BLOCK_SIZE);
		char *block = malloc(block_size);
		char **slot = block ? ss_vector_push(&pool->blocks) : NULL;
		if (!slot) {
			free(block);
			return NULL;
		}
		*slot = block;
		pool->block_size = block_size;
		pool->block_used = 0;
	}
	char *copy = pool->blocks.items[pool->blocks.count - 1] + pool->block_used;
	memcpy(copy, text, size);
	copy[size] = '\0';
	pool->block_used += size + 1;
	return copy;
}

const char *ss_intern_bytes(struct ss_intern *pool, const char *text, size_t size)
{
	uint64_t hash = XXH3_64bits(text, size);
	struct entry *e = find_slot(pool->slots, pool->slot_count, hash, text, size);

	if (e->text)
		return e->text;
	if (pool->used * 2 >= pool->slot_count) {
		if (!grow(pool))
			return NULL;
		e = find_slot(pool->slots, pool->slot_count, hash, text, size);
	}
	char *copy = copy_text(pool, text, size);
	if (!copy)
		return NULL;
	*e = (struct entry){ .hash = hash, .text = copy, .size = size };
	pool->used++;
	return copy;
}

const char *ss_intern_string(struct ss_intern *pool, const char *text)
{
	return ss_intern_bytes(pool, text, strlen(text));
}
