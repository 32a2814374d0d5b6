#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolize/symtab.h"

static void build(struct ss_segments *segments, struct ss_range *ranges, size_t count)
{
	assert_true(ss_ranges_sort(ranges, count));
	assert_true(ss_segments_build(segments, ranges, count));
}

TEST(test_nothing)
{
	struct ss_segments segments;

	build(&segments, NULL, 0);
	assert_int_equal(ss_segments_find(&segments, 0), SS_SEGMENT_NONE);
	ss_segments_free(&segments);
	assert_int_equal(ss_segments_find(&segments, 1), SS_SEGMENT_NONE);
}

TEST(test_nested)
{
	struct ss_range ranges[] = {
		{ 20, 30, 1 }, { 10, 50, 0 }, { 22, 25, 2 }, { 60, 60, 9 }, { 50, 55, 3 },
	};
	const uint32_t expected[][2] = {
		{ 9, SS_SEGMENT_NONE },
		{ 10, 0 },
		{ 19, 0 },
		{ 20, 1 },
		{ 22, 2 },
		{ 25, 1 },
		{ 29, 1 },
		{ 30, 0 },
		{ 49, 0 },
		{ 50, 3 },
		{ 54, 3 },
		{ 55, SS_SEGMENT_NONE },
		{ 60, SS_SEGMENT_NONE },
	};
	struct ss_segments segments;

	build(&segments, ranges, SS_ARRAY_SIZE(ranges));
	for (size_t i = 0; i < SS_ARRAY_SIZE(expected); i++)
		assert_int_equal(ss_segments_find(&segments, expected[i][0]),
				 expected[i][1]);
	ss_segments_free(&segments);
}

/* The range that begins last, and of equal starts the later one, whatever its end. */
static uint32_t find_slowly(const struct ss_range *ranges, size_t count, uint64_t address)
{
	uint32_t found = SS_SEGMENT_NONE;
	uint64_t start = 0;

	for (size_t i = 0; i < count; i++) {
		if (ranges[i].start <= address && address < ranges[i].end &&
		    (found == SS_SEGMENT_NONE || ranges[i].start >= start)) {
			start = ranges[i].start;
			found = ranges[i].value;
		}
	}
	return found;
}

TEST(test_against_a_slow_search)
{
	enum { COUNT = 40, SPACE = 100 };
	struct ss_range ranges[COUNT];
	struct ss_range original[COUNT];
	struct ss_segments segments;

	srand(1);
	for (int round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < COUNT; i++) {
			uint64_t start = (uint64_t)(rand() % SPACE);
			ranges[i] = (struct ss_range){
				start, start + (uint64_t)(rand() % SPACE / 2), i
			};
		}
		memcpy(original, ranges, sizeof(ranges));
		build(&segments, ranges, COUNT);
		for (uint64_t address = 0; address < 2 * SPACE; address++)
			assert_int_equal(ss_segments_find(&segments, address),
					 find_slowly(original, COUNT, address));
		ss_segments_free(&segments);
	}
}

TEST(test_far_apart)
{
	struct ss_range ranges[] = {
		{ UINT64_MAX - 1, UINT64_MAX, 2 },
		{ 0, UINT64_MAX, 0 },
		{ (uint64_t)1 << 63, ((uint64_t)1 << 63) + 1, 1 },
	};
	struct ss_segments segments;

	build(&segments, ranges, SS_ARRAY_SIZE(ranges));
	assert_int_equal(ss_segments_find(&segments, 0), 0);
	assert_int_equal(ss_segments_find(&segments, (uint64_t)1 << 63), 1);
	assert_int_equal(ss_segments_find(&segments, UINT64_MAX - 1), 2);
	assert_int_equal(ss_segments_find(&segments, UINT64_MAX), SS_SEGMENT_NONE);
	ss_segments_free(&segments);
}
