/*
 * A growing line of text that is put together piece by piece.
 */
#ifndef SS_BASE_WORDS_H
#define SS_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

struct ss_words {
	char *bytes; /* NUL-terminated; NULL while nothing was added */
	size_t size;
	size_t capacity;
	bool failed; /* out of memory: something is missing */
};

/* Appends formatted text. What finds no memory is left out, and failed is set. */
void ss_words_add(struct ss_words *words, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Cuts the text to the first size bytes of it. */
void ss_words_cut(struct ss_words *words, size_t size);

void ss_words_free(struct ss_words *words);

#define _cleanup_words_ __attribute__((cleanup(ss_words_free)))

#endif
