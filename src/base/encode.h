/*
 * The integers and strings of recordings and messages: encoders that append to a buffer,
 * and the decoders that base/cursor.h does not have.
 */
#ifndef SS_BASE_ENCODE_H
#define SS_BASE_ENCODE_H

#include "base/buffer.h"
#include "base/cursor.h"

void ss_encode_uleb128(struct ss_buffer *out, uint64_t value);
/* Zigzag: 0, -1, 1, -2 become 0, 1, 2, 3, which are encoded as unsigned LEB128. */
void ss_encode_zigzag(struct ss_buffer *out, int64_t value);
/* The size as unsigned LEB128, then the bytes. NULL is encoded as "". */
void ss_encode_text(struct ss_buffer *out, const char *text);

/* A little-endian integer of size bytes. */
void ss_encode_fixed(uint8_t *bytes, uint64_t value, size_t size);
uint64_t ss_decode_fixed(const void *bytes, size_t size);

int64_t ss_decode_zigzag(struct ss_cursor *cursor);

#endif
