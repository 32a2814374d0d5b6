#include "base/encode.h"

#include <string.h>

void ss_encode_uleb128(struct ss_buffer *out, uint64_t value)
{
	uint8_t encoded[10];
	size_t size = 0;

	do {
		encoded[size++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value);
	ss_buffer_add(out, encoded, size);
}

void ss_encode_zigzag(struct ss_buffer *out, int64_t value)
{
	uint64_t sign = value < 0 ? UINT64_MAX : 0;

	ss_encode_uleb128(out, (uint64_t)value << 1 ^ sign);
}

void ss_encode_text(struct ss_buffer *out, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	ss_encode_uleb128(out, size);
	ss_buffer_add(out, text, size);
}

void ss_encode_fixed(uint8_t *bytes, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

uint64_t ss_decode_fixed(const void *bytes, size_t size)
{
	struct ss_cursor cursor = { .at = bytes, .end = (const uint8_t *)bytes + size };

	return ss_cursor_fixed(&cursor, size);
}

int64_t ss_decode_zigzag(struct ss_cursor *cursor)
{
	uint64_t value = ss_cursor_uleb128(cursor);

	return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}
