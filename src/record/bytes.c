#include "record/bytes.h"

#include <string.h>

#include "base/vector.h"

void ss_bytes_free(struct ss_bytes *bytes)
{
	free(bytes->items);
	*bytes = (struct ss_bytes){};
}

void ss_bytes_put(struct ss_bytes *bytes, const void *data, size_t size)
{
	if (bytes->failed || !size)
		return;
	if (!ss_vector_reserve(bytes, bytes->count + size)) {
		bytes->failed = true;
		return;
	}
	memcpy(bytes->items + bytes->count, data, size);
	bytes->count += size;
}

void ss_bytes_put_byte(struct ss_bytes *bytes, uint8_t value)
{
	ss_bytes_put(bytes, &value, 1);
}

void ss_bytes_put_number(struct ss_bytes *bytes, uint64_t value)
{
	uint8_t encoded[10];
	size_t size = 0;

	do {
		encoded[size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	ss_bytes_put(bytes, encoded, size);
}

void ss_bytes_put_signed(struct ss_bytes *bytes, int64_t value)
{
	uint64_t sign = value < 0 ? UINT64_MAX : 0;

	ss_bytes_put_number(bytes, (uint64_t)value << 1 ^ sign);
}

void ss_bytes_put_text(struct ss_bytes *bytes, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	ss_bytes_put_number(bytes, size);
	ss_bytes_put(bytes, text, size);
}

void ss_bytes_put_fixed(struct ss_bytes *bytes, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		ss_bytes_put_byte(bytes, (uint8_t)(value >> 8 * i));
}

uint64_t ss_fixed_get(const uint8_t *at, unsigned size)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return value;
}

uint8_t ss_cursor_byte(struct ss_cursor *cursor)
{
	if (cursor->at < cursor->end)
		return *cursor->at++;
	cursor->failed = true;
	return 0;
}

uint64_t ss_cursor_number(struct ss_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = ss_cursor_byte(cursor);
		/* The tenth byte has one bit to give. */
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return cursor->failed ? 0 : value;
	}
	cursor->failed = true;
	return 0;
}

int64_t ss_cursor_signed(struct ss_cursor *cursor)
{
	uint64_t value = ss_cursor_number(cursor);

	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

uint32_t ss_cursor_index(struct ss_cursor *cursor, size_t limit)
{
	uint64_t value = ss_cursor_number(cursor);

	if (value < limit && value < UINT32_MAX)
		return (uint32_t)value;
	cursor->failed = true;
	return 0;
}

const uint8_t *ss_cursor_take(struct ss_cursor *cursor, size_t size)
{
	const uint8_t *at = cursor->at;

	if (cursor->failed || size > (size_t)(cursor->end - at)) {
		cursor->failed = true;
		return NULL;
	}
	cursor->at += size;
	return at;
}
