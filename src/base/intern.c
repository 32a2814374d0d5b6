#include "base/intern.h"

#include <stdint.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash.h"
#include "base/vector.h"

struct string {
	const char *text;
	size_t size;
};

/* Strings live in blocks that never move. */
struct ss_intern {
	struct ss_hash table; /* of strings */
	SS_VECTOR(struct string) strings;
	SS_VECTOR(char *) blocks;
	size_t block_used;
	size_t block_size;
};

struct query {
	const struct ss_intern *pool;
	struct string string;
};

enum { BLOCK_SIZE = 64 * 1024 };

struct ss_intern *ss_intern_new(void)
{
	return calloc(1, sizeof(struct ss_intern));
}

void ss_intern_free(struct ss_intern *pool)
{
	if (!pool)
		return;
	for (size_t i = 0; i < pool->blocks.count; i++)
		free(pool->blocks.items[i]);
	ss_vector_free(&pool->blocks);
	ss_vector_free(&pool->strings);
	ss_hash_deinit(&pool->table);
	free(pool);
}

static bool is_same(const void *context, uint32_t index)
{
	const struct query *query = context;
	const struct string *string = &query->pool->strings.items[index];

	return string->size == query->string.size &&
	       memcmp(string->text, query->string.text, string->size) == 0;
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
	const struct query query = { pool, { text, size } };
	uint64_t hash = XXH3_64bits(text, size);
	uint32_t index = ss_hash_find(&pool->table, hash, is_same, &query);

	if (index != SS_HASH_NONE)
		return pool->strings.items[index].text;
	if (!ss_hash_reserve(&pool->table) ||
	    !ss_vector_reserve(&pool->strings, pool->strings.count + 1))
		return NULL;
	char *copy = copy_text(pool, text, size);
	if (!copy)
		return NULL;
	struct string *string = ss_vector_push(&pool->strings);
	*string = (struct string){ .text = copy, .size = size };
	ss_hash_insert(&pool->table, hash, (uint32_t)pool->strings.count - 1);
	return copy;
}

const char *ss_intern_string(struct ss_intern *pool, const char *text)
{
	return ss_intern_bytes(pool, text, strlen(text));
}
