#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/vector.h"

void ss_words_add(struct ss_words *words, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size < 0 || !ss_vector_reserve_bytes((void **)&words->bytes, &words->capacity,
						 words->size + (size_t)size + 1, 1)) {
		words->failed = true;
		return;
	}
	va_start(args, format);
	(void)vsnprintf(words->bytes + words->size, (size_t)size + 1, format, args);
	va_end(args);
	words->size += (size_t)size;
}

void ss_words_cut(struct ss_words *words, size_t size)
{
	if (size >= words->size)
		return;
	words->size = size;
	words->bytes[size] = '\0';
}

void ss_words_free(struct ss_words *words)
{
	free(words->bytes);
	*words = (struct ss_words){};
}
