#include "output/protobuf.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_MAX = 10 };

static size_t varint(uint64_t value, uint8_t ret[VARINT_MAX])
{
	size_t size = 0;

	while (value >= 0x80) {
		ret[size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	ret[size++] = (uint8_t)value;
	return size;
}

static void add_varint(struct ss_buffer *message, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];

	ss_buffer_add(message, bytes, varint(value, bytes));
}

static void add_head(struct ss_buffer *message, unsigned field, size_t size)
{
	add_varint(message, (uint64_t)field << 3 | WIRE_BYTES);
	add_varint(message, size);
}

void ss_protobuf_number(struct ss_buffer *message, unsigned field, uint64_t value)
{
	if (!value)
		return;
	add_varint(message, (uint64_t)field << 3 | WIRE_VARINT);
	add_varint(message, value);
}

void ss_protobuf_text(struct ss_buffer *message, unsigned field, const char *text)
{
	add_head(message, field, strlen(text));
	ss_buffer_add(message, text, strlen(text));
}

void ss_protobuf_numbers(struct ss_buffer *message, unsigned field,
			 const uint64_t *values, size_t count)
{
	uint8_t bytes[VARINT_MAX];
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += varint(values[i], bytes);
	add_head(message, field, size);
	for (size_t i = 0; i < count; i++)
		add_varint(message, values[i]);
}

void ss_protobuf_message(struct ss_buffer *message, unsigned field,
			 const struct ss_buffer *inner)
{
	if (inner->failed)
		message->failed = true;
	add_head(message, field, inner->size);
	ss_buffer_add(message, inner->bytes, inner->size);
}
