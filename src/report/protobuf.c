#include "report/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, VARINT_MAX = 10 };

static void put(struct ss_protobuf *message, const void *bytes, size_t size)
{
	if (message->broken ||
	    !ss_vector_reserve_bytes((void **)&message->bytes, &message->capacity,
				     message->size + size, 1)) {
		message->broken = true;
		return;
	}
	if (size)
		memcpy(message->bytes + message->size, bytes, size);
	message->size += size;
}

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

static void put_varint(struct ss_protobuf *message, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];

	put(message, bytes, varint(value, bytes));
}

static void put_head(struct ss_protobuf *message, unsigned field, size_t size)
{
	put_varint(message, (uint64_t)field << 3 | WIRE_BYTES);
	put_varint(message, size);
}

void ss_protobuf_number(struct ss_protobuf *message, unsigned field, uint64_t value)
{
	if (!value)
		return;
	put_varint(message, (uint64_t)field << 3 | WIRE_VARINT);
	put_varint(message, value);
}

void ss_protobuf_text(struct ss_protobuf *message, unsigned field, const char *text)
{
	put_head(message, field, strlen(text));
	put(message, text, strlen(text));
}

void ss_protobuf_numbers(struct ss_protobuf *message, unsigned field,
			 const uint64_t *values, size_t count)
{
	uint8_t bytes[VARINT_MAX];
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += varint(values[i], bytes);
	put_head(message, field, size);
	for (size_t i = 0; i < count; i++)
		put_varint(message, values[i]);
}

void ss_protobuf_message(struct ss_protobuf *message, unsigned field,
			 const struct ss_protobuf *inner)
{
	if (inner->broken)
		message->broken = true;
	put_head(message, field, inner->size);
	put(message, inner->bytes, inner->size);
}

void ss_protobuf_deinit(struct ss_protobuf *message)
{
	free(message->bytes);
	*message = (struct ss_protobuf){};
}
