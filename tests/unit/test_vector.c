#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vector.h"

struct ss_block {
	char bytes[64];
};

TEST(test_push)
{
	SS_VECTOR(uint64_t) numbers = {};

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t *slot = ss_vector_push(&numbers);
		assert_non_null(slot);
		assert_int_equal(*slot, 0);
		*slot = i;
	}
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(numbers.items[i], i);
	numbers.count = 0;
	assert_int_equal(*ss_vector_push(&numbers), 0);
	ss_vector_free(&numbers);
	assert_null(numbers.items);
	assert_int_equal(numbers.capacity, 0);
}

/* A size that no memory has changes nothing. */
TEST(test_overflow)
{
	SS_VECTOR(struct ss_block) blocks = {};

	assert_non_null(ss_vector_push(&blocks));
	void *items = blocks.items;
	assert_false(ss_vector_reserve(&blocks, SIZE_MAX));
	assert_false(ss_vector_reserve(&blocks, SIZE_MAX / 64 + 1));
	assert_false(ss_vector_reserve(&blocks, SIZE_MAX / 2 + 2));
	assert_ptr_equal(blocks.items, items);
	assert_int_equal(blocks.capacity, 16);
	assert_int_equal(blocks.count, 1);
	ss_vector_free(&blocks);
}

/* Arguments are evaluated once, also those of nested calls. */
TEST(test_smaller_and_larger)
{
	int64_t number = 0;

	assert_int_equal(SS_MIN(number++, 5), 0);
	assert_int_equal(SS_MAX(number++, 0), 1);
	assert_int_equal(SS_MAX(SS_MIN(number++, 7), SS_MIN(number++, 7)), 3);
	assert_int_equal(number, 4);
	assert_true(SS_MIN((uint8_t)200, SIZE_MAX) == 200);
}
