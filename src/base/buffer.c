#include "base/buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

bool ss_buffer_reserve(struct ss_buffer *buffer, size_t size)
{
	size_t needed;

	if (__builtin_add_overflow(size, 1, &needed) ||
	    !ss_vector_reserve_bytes((void **)&buffer->bytes, &buffer->capacity, needed,
				     1)) {
		buffer->failed = true;
		return false;
	}
	return true;
}

void ss_buffer_add(struct ss_buffer *buffer, const void *bytes, size_t size)
{
	size_t total;

	if (buffer->failed || size == 0)
		return;
	if (__builtin_add_overflow(buffer->size, size, &total))
		total = SIZE_MAX;
	if (!ss_buffer_reserve(buffer, total))
		return;
	memcpy(buffer->bytes + buffer->size, bytes, size);
	buffer->size = total;
	buffer->bytes[total] = '\0';
}

void ss_buffer_add_byte(struct ss_buffer *buffer, uint8_t byte)
{
	ss_buffer_add(buffer, &byte, 1);
}

void ss_buffer_printf(struct ss_buffer *buffer, const char *format, ...)
{
	va_list args;
	va_list again;

	va_start(again, format);
	int size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (size < 0)
		buffer->failed = true;
	if (buffer->failed || !ss_buffer_reserve(buffer, buffer->size + (size_t)size))
		return;
	va_start(args, format);
	(void)vsnprintf(buffer->bytes + buffer->size, (size_t)size + 1, format, args);
	va_end(args);
	buffer->size += (size_t)size;
}

void ss_buffer_truncate(struct ss_buffer *buffer, size_t size)
{
	if (size >= buffer->size)
		return;
	buffer->size = size;
	buffer->bytes[size] = '\0';
}

void ss_buffer_clear(struct ss_buffer *buffer)
{
	ss_buffer_truncate(buffer, 0);
	buffer->failed = false;
}

void ss_buffer_deinit(struct ss_buffer *buffer)
{
	free(buffer->bytes);
	*buffer = (struct ss_buffer){};
}
