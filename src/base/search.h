/*
 * The order of numbers, search, and a search of words for addresses.
 */
#ifndef SS_BASE_SEARCH_H
#define SS_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* For qsort(): below 0, 0 or above 0. Terms of an order are combined by ?:. */
#define SS_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Defines a comparison of structs by a member, for qsort() and bsearch(). */
#define SS_DEFINE_COMPARE(name, type, member)                                            \
	static int name(const void *a, const void *b)                                    \
	{                                                                                \
		const type *x = a;                                                       \
		const type *y = b;                                                       \
                                                                                         \
		return SS_COMPARE(x->member, y->member);                                 \
	}

/* Numbers of an array, for qsort() and bsearch(). */
static inline int ss_compare_u64(const void *a, const void *b)
{
	return SS_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int ss_compare_u32(const void *a, const void *b)
{
	return SS_COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

static inline int ss_compare_pids(const void *a, const void *b)
{
	return SS_COMPARE(*(const pid_t *)a, *(const pid_t *)b);
}

/*
 * The first index of 0 … count - 1 for which condition is true, or count; whether there is
 * one; and whether it is true for all. The condition is an expression in the variable i:
 *
 *	return ss_any(list->count, i, list->items[i].tid == tid);
 */
#define ss_find(count, i, condition)                                                     \
	({                                                                               \
		size_t i = 0;                                                            \
		while (i < (count) && !(condition))                                      \
			i++;                                                             \
		i;                                                                       \
	})
#define ss_any(count, i, condition) (ss_find(count, i, condition) < (count))
#define ss_all(count, i, condition) (ss_find(count, i, !(condition)) == (count))

/*
 * The first index of 0 … count - 1 for which condition is false, or count. The condition
 * is an expression in the variable i, true up to some index and false from there on:
 *
 *	size_t at = ss_lower_bound(list->count, i, list->items[i].tid < tid);
 *	if (at < list->count && list->items[at].tid == tid)
 *		...
 */
#define ss_lower_bound(count, i, condition)                                              \
	({                                                                               \
		size_t ss_low_ = 0;                                                      \
		size_t ss_high_ = (count);                                               \
		while (ss_low_ < ss_high_) {                                             \
			const size_t i = ss_low_ + (ss_high_ - ss_low_) / 2;             \
			if (condition)                                                   \
				ss_low_ = i + 1;                                         \
			else                                                             \
				ss_high_ = i;                                            \
		}                                                                        \
		ss_low_;                                                                 \
	})

/* The element of an array, sorted by a member, in which it has that value; or NULL. */
#define ss_search(items, count, member, value)                                           \
	({                                                                               \
		const size_t ss_at_ =                                                    \
			ss_lower_bound((count), ss_i_, (items)[ss_i_].member < (value)); \
		ss_at_ < (count) && (items)[ss_at_].member == (value) ?                  \
			&(items)[ss_at_] :                                               \
			NULL;                                                            \
	})

/*
 * Searches words, such as those of a stack, for addresses in a range.
 */

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
