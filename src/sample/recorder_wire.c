#include "sample/unwinder.h"

#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* A table, whatever its elements are. */
typedef SS_VECTOR(void) any_vector;

#define TABLE(member)                                                                    \
	{                                                                                \
		offsetof(struct ss_unwound, member),                                     \
			sizeof(*((struct ss_unwound *)NULL)->member.items)               \
	}

static const struct table {
	size_t offset;
	size_t element_size;
} tables[] = {
	TABLE(modules), TABLE(stacks), TABLE(frames), TABLE(threads),
	TABLE(calls),	TABLE(texts),  TABLE(plans),
};

static any_vector *vector_of(struct ss_unwound *unwound, const struct table *table)
{
	return (any_vector *)(void *)((char *)unwound + table->offset);
}

void ss_unwound_clear(struct ss_unwound *unwound)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(tables); i++)
		vector_of(unwound, &tables[i])->count = 0;
	unwound->no_memory = false;
}

void ss_unwound_deinit(struct ss_unwound *unwound)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(tables); i++)
		ss_vector_free(vector_of(unwound, &tables[i]));
}

void ss_unwound_encode(struct ss_unwound *unwound, struct ss_buffer *out)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(tables); i++) {
		const any_vector *vector = vector_of(unwound, &tables[i]);
		const uint64_t count = vector->count;
		ss_buffer_add(out, &count, sizeof(count));
		if (count)
			ss_buffer_add(out, vector->items, count * tables[i].element_size);
	}
}

bool ss_unwound_decode(struct ss_unwound *unwound, struct ss_cursor *cursor)
{
	ss_unwound_clear(unwound);
	for (size_t i = 0; i < SS_ARRAY_SIZE(tables); i++) {
		any_vector *vector = vector_of(unwound, &tables[i]);
		const size_t size = tables[i].element_size;
		const uint64_t count = ss_cursor_fixed(cursor, sizeof(count));
		if (count > ss_cursor_left(cursor) / size)
			return false;
		if (!ss_vector_reserve_bytes(&vector->items, &vector->capacity, count,
					     size)) {
			unwound->no_memory = true;
			return false;
		}
		const uint8_t *bytes = ss_cursor_take(cursor, count * size);
		if (count)
			memcpy(vector->items, bytes, count * size);
		vector->count = count;
	}
	return !cursor->failed && ss_cursor_left(cursor) == 0;
}

uint32_t ss_unwound_add_text(struct ss_unwound *unwound, const char *text, size_t max)
{
	const size_t length = text ? strnlen(text, max) : 0;
	/* The offset 0 is none. */
	const size_t at = SS_MAX(unwound->texts.count, (size_t)1);

	if (!text)
		return 0;
	if (at + length + 1 > UINT32_MAX ||
	    !ss_vector_reserve(&unwound->texts, at + length + 1)) {
		unwound->no_memory = true;
		return 0;
	}
	char *items = unwound->texts.items;
	items[0] = items[at + length] = '\0';
	memcpy(items + at, text, length);
	unwound->texts.count = at + length + 1;
	return (uint32_t)at;
}
