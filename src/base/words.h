/*
 * Searches words, such as those of a stack, for addresses in a range.
 */
#ifndef SS_BASE_WORDS_H
#define SS_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SS_WORDS = 8, SS_WORDS_SIZE = SS_WORDS * 8 };

/* 1 or 0 */
static inline unsigned ss_word_is_in(const uint8_t *bytes, uint64_t low, uint64_t size)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word - low < size;
}

/* Whether one of SS_WORDS words is in the range. Usually none is, and without a branch for each this
   takes half the time. */
static inline bool ss_words_any(const uint8_t *bytes, uint64_t low, uint64_t size)
{
	return (ss_word_is_in(bytes, low, size) | ss_word_is_in(bytes + 8, low, size) |
		ss_word_is_in(bytes + 16, low, size) |
		ss_word_is_in(bytes + 24, low, size) |
		ss_word_is_in(bytes + 32, low, size) |
		ss_word_is_in(bytes + 40, low, size) |
		ss_word_is_in(bytes + 48, low, size) |
		ss_word_is_in(bytes + 56, low, size)) != 0;
}

#endif
