/* Threads that are shown as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "report/text_frames.h"

/* The largest first, then by the first item. */
static void test_order(void **state)
{
	static const size_t numbers[] = { 2, 3, 5, 7, 9, 11 };
	static const struct ss_bundle_key keys[] = { { 4, 0 }, { 1, 0 }, { 1, 8 },
						     { 4, 0 }, { 1, 8 }, { 4, 0 } };
	static const size_t expected[][4] = { { 3, 2, 7, 11 }, { 2, 5, 9 }, { 1, 3 } };
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		ss_bundles_new(numbers, keys, SS_ARRAY_SIZE(numbers));

	(void)state;
	assert_non_null(bundles);
	assert_int_equal(bundles->count, SS_ARRAY_SIZE(expected));
	for (size_t i = 0; i < bundles->count; i++) {
		assert_int_equal(bundles->items[i].count, expected[i][0]);
		for (size_t k = 0; k < bundles->items[i].count; k++)
			assert_int_equal(bundles->items[i].items[k], expected[i][k + 1]);
	}
}

static void test_none(void **state)
{
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		ss_bundles_new(NULL, NULL, 0);

	(void)state;
	assert_non_null(bundles);
	assert_int_equal(bundles->count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
