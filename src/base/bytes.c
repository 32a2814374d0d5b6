#include "base/bytes.h"

#include <string.h>

static uint64_t fail(struct ss_cursor *cursor)
{
	cursor->failed = true;
	cursor->at = cursor->end;
	return 0;
}

uint8_t ss_cursor_byte(struct ss_cursor *cursor)
{
	return cursor->at < cursor->end ? *cursor->at++ : (uint8_t)fail(cursor);
}

uint64_t ss_cursor_fixed(struct ss_cursor *cursor, size_t size)
{
	const uint8_t *bytes = ss_cursor_take(cursor, size);
	uint64_t value = 0;

	for (size_t i = 0; bytes && i < size; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

/*
 * Whether seven bits at this shift leave the number within 64 bits. Assemblers may pad
 * numbers with bytes that only repeat the sign.
 */
static bool fits(uint8_t bits, unsigned shift, uint64_t value, bool is_signed)
{
	if (shift < 63)
		return true;
	if (shift == 63)
		return bits == 0 || bits == (is_signed ? 0x7f : 1);
	return bits == (is_signed && value >> 63 ? 0x7f : 0);
}

static uint64_t read_leb128(struct ss_cursor *cursor, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = ss_cursor_byte(cursor);
		uint8_t bits = byte & 0x7f;
		if (!fits(bits, shift, value, is_signed))
			return fail(cursor);
		if (shift < 64) {
			value |= (uint64_t)bits << shift;
			shift += 7;
		}
	} while (byte & 0x80);
	if (is_signed && shift < 64 && byte & 0x40)
		value |= UINT64_MAX << shift;
	return cursor->failed ? 0 : value;
}

uint64_t ss_cursor_uleb128(struct ss_cursor *cursor)
{
	return read_leb128(cursor, false);
}

int64_t ss_cursor_sleb128(struct ss_cursor *cursor)
{
	return (int64_t)read_leb128(cursor, true);
}

uint32_t ss_cursor_index(struct ss_cursor *cursor, size_t limit)
{
	uint64_t value = ss_cursor_uleb128(cursor);

	if (value < limit && value < UINT32_MAX)
		return (uint32_t)value;
	return (uint32_t)fail(cursor);
}

const uint8_t *ss_cursor_take(struct ss_cursor *cursor, size_t size)
{
	const uint8_t *at = cursor->at;

	if (cursor->failed || size > ss_cursor_left(cursor)) {
		(void)fail(cursor);
		return NULL;
	}
	cursor->at += size;
	return at;
}

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
