#include "base/vector.h"

#include <stdint.h>
#include <string.h>

bool ss_vector_reserve_bytes(void **items, size_t *capacity, size_t count,
			     size_t element_size)
{
	if (count <= *capacity)
		return true;
	size_t new_capacity = *capacity ? *capacity : 16;
	while (new_capacity < count) {
		if (__builtin_mul_overflow(new_capacity, 2, &new_capacity))
			return false;
	}
	/* Checked here, because AddressSanitizer aborts if reallocarray() is given such a size. */
	size_t size;
	if (__builtin_mul_overflow(new_capacity, element_size, &size) ||
	    size > PTRDIFF_MAX)
		return false;
	void *grown = realloc(*items, size);
	if (!grown)
		return false;
	*items = grown;
	*capacity = new_capacity;
	return true;
}

void *ss_vector_push_bytes(void **items, size_t *count, size_t *capacity,
			   size_t element_size)
{
	if (!ss_vector_reserve_bytes(items, capacity, *count + 1, element_size))
		return NULL;
	char *element = (char *)*items + *count * element_size;
	*count += 1;
	return memset(element, 0, element_size);
}
