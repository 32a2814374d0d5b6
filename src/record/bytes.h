/*
 * Numbers and strings as the recording format has them: growing bytes to write to, and
 * a cursor that never passes the end of what is read.
 */
#ifndef SS_RECORD_BYTES_H
#define SS_RECORD_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Growing bytes. Running out of memory is remembered, and what is put after it lost. */
struct ss_bytes {
	uint8_t *items;
	size_t count;
	size_t capacity;
	bool failed;
};

void ss_bytes_free(struct ss_bytes *bytes);
void ss_bytes_put(struct ss_bytes *bytes, const void *data, size_t size);
void ss_bytes_put_byte(struct ss_bytes *bytes, uint8_t value);
/* LEB128, as DWARF has it (section 7.6): seven bits a byte, low ones first. */
void ss_bytes_put_number(struct ss_bytes *bytes, uint64_t value);
/* Zigzag: 0, -1, 1, -2 are 0, 1, 2, 3. */
void ss_bytes_put_signed(struct ss_bytes *bytes, int64_t value);
/* Its size as a number, then its bytes. NULL is an empty one. */
void ss_bytes_put_text(struct ss_bytes *bytes, const char *text);

/* Little-endian, of size bytes. */
void ss_bytes_put_fixed(struct ss_bytes *bytes, uint64_t value, unsigned size);
uint64_t ss_fixed_get(const uint8_t *at, unsigned size);

/* A cursor. Reading beyond the end yields zeroes and sets failed. */
struct ss_cursor {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

uint8_t ss_cursor_byte(struct ss_cursor *cursor);
uint64_t ss_cursor_number(struct ss_cursor *cursor);
int64_t ss_cursor_signed(struct ss_cursor *cursor);
/* A number of less than limit; otherwise the cursor has failed. */
uint32_t ss_cursor_index(struct ss_cursor *cursor, size_t limit);
/* The next size bytes, or NULL. */
const uint8_t *ss_cursor_take(struct ss_cursor *cursor, size_t size);

#define _cleanup_bytes_ __attribute__((cleanup(ss_bytes_free)))

#endif
