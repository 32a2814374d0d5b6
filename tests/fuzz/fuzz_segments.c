/* Overlapping ranges, compared with a straightforward implementation: the last start or the
   greatest value wins. */
#include <string.h>

#include "fuzz.h"
#include "symbolize/symtab.h"

enum { RANGES_MAX = 64 };

static uint32_t expect(const struct ss_range *ranges, size_t count, uint64_t address)
{
	uint32_t found = SS_SEGMENT_NONE;

	for (size_t i = 0; i < count; i++)
		if (ranges[i].start <= address && address < ranges[i].end)
			found = ranges[i].value;
	return found;
}

static uint32_t expect_greatest(const struct ss_range *ranges, size_t count,
				uint64_t address)
{
	uint32_t found = SS_SEGMENT_NONE;

	for (size_t i = 0; i < count; i++)
		if (ranges[i].start <= address && address < ranges[i].end &&
		    (found == SS_SEGMENT_NONE || ranges[i].value > found))
			found = ranges[i].value;
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_range ranges[RANGES_MAX];
	struct ss_segments segments = {};
	size_t count = 0;

	for (; count < RANGES_MAX && 2 * count + 2 <= size; count++)
		ranges[count] = (struct ss_range){ .start = data[2 * count],
						   .end = data[2 * count + 1],
						   .value = (uint32_t)count };
	if (count == 0 || !ss_ranges_sort(ranges, count) ||
	    !ss_segments_build(&segments, ranges, count))
		return 0;
	for (uint64_t address = 0; address < 256; address++)
		FUZZ_REQUIRE(ss_segments_find(&segments, address) ==
			     expect(ranges, count, address));
	ss_segments_free(&segments);
	if (!ss_segments_build_by_value(&segments, ranges, count))
		return 0;
	for (uint64_t address = 0; address < 256; address++)
		FUZZ_REQUIRE(ss_segments_find(&segments, address) ==
			     expect_greatest(ranges, count, address));
	ss_segments_free(&segments);
	return 0;
}
