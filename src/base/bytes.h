/*
 * Integers and strings as bytes.
 */
#ifndef SS_BASE_BYTES_H
#define SS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"

/* An integer at any alignment, in the byte order of this machine. The caller has checked that the bytes
   are there. */
static inline uint64_t ss_load_u64(const void *bytes, size_t at)
{
	uint64_t value;

	memcpy(&value, (const char *)bytes + at, sizeof(value));
	return value;
}

/* Likewise, of a word of 4 or 8 bytes: faster than memcpy(3) of a size that is not known. */
static inline uint64_t ss_load_word(const void *bytes, size_t at, size_t word)
{
	uint32_t narrow;

	if (word == sizeof(uint64_t))
		return ss_load_u64(bytes, at);
	memcpy(&narrow, (const char *)bytes + at, sizeof(narrow));
	return narrow;
}

/* The last component of a path; the whole path if that is empty. */
static inline const char *ss_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/*
 * Reads untrusted bytes from the front: fixed-size integers and LEB128 (DWARF 5, section
 * 7.6). A read beyond the end, or a number that does not fit in 64 bits, yields 0 and
 * sets failed, so that callers check once, at the end. After a failure the cursor is at
 * the end.
 */

struct ss_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

uint8_t ss_cursor_byte(struct ss_cursor *cursor);
/* A little-endian unsigned integer of size bytes, 8 at most. */
uint64_t ss_cursor_fixed(struct ss_cursor *cursor, size_t size);
uint64_t ss_cursor_uleb128(struct ss_cursor *cursor);
int64_t ss_cursor_sleb128(struct ss_cursor *cursor);
/* An unsigned LEB128 number below limit; any other fails. */
uint32_t ss_cursor_index(struct ss_cursor *cursor, size_t limit);
/* The next size bytes, which remain where they are, or NULL. */
const uint8_t *ss_cursor_take(struct ss_cursor *cursor, size_t size);

static inline struct ss_cursor ss_buffer_cursor(const struct ss_buffer *buffer)
{
	const uint8_t *bytes = (const uint8_t *)buffer->bytes;

	/* Without bytes it is NULL, to which C adds not even 0. */
	return (struct ss_cursor){ .at = bytes,
				   .end = bytes ? bytes + buffer->size : NULL };
}

static inline size_t ss_cursor_left(const struct ss_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/*
 * The integers and strings of recordings and messages.
 */

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
