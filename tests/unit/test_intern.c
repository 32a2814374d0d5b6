#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/intern.h"

static void test_equal_strings_share(void **state)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *pool = ss_intern_new();

	(void)state;
	const char *a = ss_intern_string(pool, "abc");
	assert_ptr_equal(ss_intern_bytes(pool, "abcdef", 3), a);
	assert_ptr_not_equal(ss_intern_string(pool, "abcd"), a);
	const char *empty = ss_intern_string(pool, "");
	assert_string_equal(empty, "");
	assert_ptr_equal(ss_intern_bytes(pool, "x", 0), empty);
}

/* Beyond the first table and the first block; nothing moves. */
static void test_many(void **state)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *pool = ss_intern_new();
	static const char *kept[20000];
	char text[32];

	(void)state;
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
static void test_large(void **state)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *pool = ss_intern_new();
	_cleanup_free_ char *large = malloc(300000);

	(void)state;
	memset(large, 'x', 300000);
	const char *small = ss_intern_string(pool, "small");
	const char *copy = ss_intern_bytes(pool, large, 300000);
	assert_int_equal(strlen(copy), 300000);
	assert_ptr_equal(ss_intern_string(pool, "small"), small);
	assert_string_equal(ss_intern_string(pool, "after"), "after");
	assert_ptr_equal(ss_intern_bytes(pool, large, 300000), copy);
	ss_intern_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_strings_share),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
