/*
 * A growing buffer of bytes or text. A zeroed struct is an empty buffer.
 *
 *	_cleanup_buffer_ struct ss_buffer line = {};
 *	ss_buffer_printf(&line, "thread %d", tid);
 *	if (line.failed)
 *		return ss_error_no_memory();
 *
 * A terminating NUL, which size does not count, always follows the content. bytes is
 * NULL until something was added. Running out of memory sets failed and drops this and
 * all later additions, so that callers check once, at the end.
 */
#ifndef SS_BASE_BUFFER_H
#define SS_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ss_buffer {
	char *bytes;
	size_t size;
	size_t capacity;
	bool failed;
};

/* Makes room for a total of size bytes and a NUL. Without memory returns false and
   sets failed. */
bool ss_buffer_reserve(struct ss_buffer *buffer, size_t size);

void ss_buffer_add(struct ss_buffer *buffer, const void *bytes, size_t size);
void ss_buffer_add_byte(struct ss_buffer *buffer, uint8_t byte);
void ss_buffer_printf(struct ss_buffer *buffer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Shortens the content to its first size bytes. A larger size changes nothing. */
void ss_buffer_truncate(struct ss_buffer *buffer, size_t size);

/* Empties the buffer and clears failed, but keeps the memory for the next use. */
void ss_buffer_clear(struct ss_buffer *buffer);

void ss_buffer_deinit(struct ss_buffer *buffer);

#define _cleanup_buffer_ __attribute__((cleanup(ss_buffer_deinit)))

#endif
