/*
 * A growing array of one element type, as an embedded struct:
 *
 *	SS_VECTOR(struct ss_map) maps = {};
 *	struct ss_map *m = ss_vector_push(&maps);   (zeroed, or NULL: no memory)
 *	ss_vector_free(&maps);
 *
 * A push may move the items: pointers to them are valid until the next push.
 */
#ifndef SS_BASE_VECTOR_H
#define SS_BASE_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define SS_VECTOR(type)                                                                  \
	struct {                                                                         \
		type *items;                                                             \
		size_t count;                                                            \
		size_t capacity;                                                         \
	}

/* Makes room for a total of count elements. False without memory, with nothing
   changed. */
bool ss_vector_reserve_bytes(void **items, size_t *capacity, size_t count,
			     size_t element_size);
/* Appends a zeroed element and returns it, or NULL without memory. */
void *ss_vector_push_bytes(void **items, size_t *count, size_t *capacity,
			   size_t element_size);

#define ss_vector_reserve(v, n)                                                          \
	ss_vector_reserve_bytes((void **)&(v)->items, &(v)->capacity, (n),               \
				sizeof(*(v)->items))
#define ss_vector_push(v)                                                                \
	((__typeof__((v)->items))ss_vector_push_bytes(                                   \
		(void **)&(v)->items, &(v)->count, &(v)->capacity, sizeof(*(v)->items)))
#define ss_vector_free(v)                                                                \
	do {                                                                             \
		free((v)->items);                                                        \
		(v)->items = NULL;                                                       \
		(v)->count = (v)->capacity = 0;                                          \
	} while (0)

#endif
