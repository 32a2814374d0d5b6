#include "base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vector.h"

void ss_words_add(struct ss_words *words, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list args;

	va_start(args, format);
	int size = vasprintf(&text, format, args);
	va_end(args);
	if (size < 0)
		text = NULL; /* undefined after a failure */
	if (!text || !ss_vector_reserve_bytes((void **)&words->bytes, &words->capacity,
					      words->size + (size_t)size + 1, 1)) {
		words->failed = true;
		return;
	}
	memcpy(words->bytes + words->size, text, (size_t)size + 1);
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
