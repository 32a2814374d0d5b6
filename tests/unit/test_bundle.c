/* Threads that are shown as one. */

#include "unit.h"

#include "report/text.h"

/* The largest first, then by the first item. */
TEST(test_order)
{
	static const struct ss_text_item items[] = {
		{ .key = { 4, 0 } }, { .key = { 1, 0 } }, { .key = { 1, 8 } },
		{ .key = { 4, 0 } }, { .part = 1 },	  { .key = { 1, 8 } },
		{ .key = { 4, 0 } },
	};
	static const size_t expected[][4] = { { 3, 0, 3, 6 }, { 2, 2, 5 }, { 1, 1 } };
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		ss_bundles_new(items, SS_ARRAY_SIZE(items), 0);

	assert_non_null(bundles);
	assert_int_equal(bundles->count, SS_ARRAY_SIZE(expected));
	for (size_t i = 0; i < bundles->count; i++) {
		assert_int_equal(bundles->items[i].count, expected[i][0]);
		for (size_t k = 0; k < bundles->items[i].count; k++)
			assert_int_equal(bundles->items[i].items[k], expected[i][k + 1]);
	}
}

TEST(test_none)
{
	_cleanup_(ss_bundles_cleanup) struct ss_bundles *bundles =
		ss_bundles_new(NULL, 0, 0);

	assert_non_null(bundles);
	assert_int_equal(bundles->count, 0);
}
