/*
 * The order of numbers, and binary search.
 */
#ifndef SS_BASE_SEARCH_H
#define SS_BASE_SEARCH_H

#include <stddef.h>

/* For qsort(): below 0, 0 or above 0. Terms of an order are combined by ?:. */
#define SS_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

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

#endif
