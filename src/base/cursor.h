/*
 * Reads untrusted bytes from the front: fixed-size integers and LEB128 (DWARF 5, section
 * 7.6). A read beyond the end, or a number that does not fit in 64 bits, yields 0 and
 * sets failed, so that callers check once, at the end. After a failure the cursor is at
 * the end.
 */
#ifndef SS_BASE_CURSOR_H
#define SS_BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

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

#endif
