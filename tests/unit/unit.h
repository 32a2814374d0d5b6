/*
 * A unit test is TEST(test_name) { ... }: it is registered where it is written, and main(), which
 * runs all of a program in the order of the file, is in unit.c. With cmocka, whose assertions,
 * and whose headers, the tests use.
 */
#ifndef SS_TESTS_UNIT_H
#define SS_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* cmocka 2 has a macro of a name that tests use, and another name for numbers in a range. */
#undef stop
#ifdef assert_int_in_range
#undef assert_in_range
#define assert_in_range(value, minimum, maximum)                                         \
	assert_int_in_range((intmax_t)(value), (intmax_t)(minimum), (intmax_t)(maximum))
#endif

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	      CMFixtureFunction teardown);
void unit_set_group(CMFixtureFunction setup, CMFixtureFunction teardown);

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The fixtures, or NULL, run before and after the test; the first of them may set *state. */
#define TEST_WITH(name, setup, teardown)                                                 \
	static void name(void **state);                                                  \
	static void __attribute__((constructor)) add_##name(void)                        \
	{                                                                                \
		unit_add(#name, name, setup, teardown);                                  \
	}                                                                                \
	static void name(void **state __attribute__((unused)))

/* The fixtures, or NULL, run before the first and after the last test of the program. */
#define TEST_GROUP(setup, teardown)                                                      \
	static void __attribute__((constructor)) set_group(void)                         \
	{                                                                                \
		unit_set_group(setup, teardown);                                         \
	}

/* Copies from memory of so many bytes, from its offset at on, what there is: returns the size. */
static inline size_t unit_copy(void *ret, size_t size, const void *bytes, size_t count,
			       uint64_t at)
{
	if (at >= count)
		return 0;
	size = size < count - at ? size : (size_t)(count - at);
	memcpy(ret, (const uint8_t *)bytes + at, size);
	return size;
}

#endif
