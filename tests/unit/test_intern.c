#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <stdio.h>

#include "base/intern.h"

TEST(test_equal_strings_share)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *pool = ss_intern_new();

	const char *a = ss_intern_string(pool, "abc");
	assert_ptr_equal(ss_intern_bytes(pool, "abcdef", 3), a);
	assert_ptr_not_equal(ss_intern_string(pool, "abcd"), a);
	const char *empty = ss_intern_string(pool, "");
	assert_string_equal(empty, "");
	assert_ptr_equal(ss_intern_bytes(pool, "x", 0), empty);
}

/* Beyond the first table and the first block; nothing moves. */
TEST(test_many)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *pool = ss_intern_new();
	static const char *kept[20000];
	char text[32];

	for (int i = 0; i < 20000; i++) {
		(void)snprintf(text, sizeof(text), "string number %d", i);
		kept[i] = ss_intern_string(pool, text);
	}
	for (int i = 0; i < 20000; i++) {
		(void)snprintf(text, sizeof(text), "string number %d", i);
		assert_string_equal(kept[i], text);
		assert_ptr_equal(ss_intern_string(pool, text), kept[i]);
	}
}

/* A string larger than a block, between small ones. */
TEST(test_large)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *pool = ss_intern_new();
	_cleanup_free_ char *large = malloc(300000);

	memset(large, 'x', 300000);
	const char *small = ss_intern_string(pool, "small");
	const char *copy = ss_intern_bytes(pool, large, 300000);
	assert_int_equal(strlen(copy), 300000);
	assert_ptr_equal(ss_intern_string(pool, "small"), small);
	assert_string_equal(ss_intern_string(pool, "after"), "after");
	assert_ptr_equal(ss_intern_bytes(pool, large, 300000), copy);
	ss_intern_free(NULL);
}
