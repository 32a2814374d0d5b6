/*
 * Converts address ranges that may overlap into a sorted list of segments that do not, so
 * that a lookup is one binary search. Where ranges overlap, either the one that begins
 * last wins, which in nested code is the innermost one, or the one with the greatest
 * value. Ranges come from untrusted files: no arrangement of them is slow.
 */
#ifndef SS_SYMBOLIZE_SEGMENTS_H
#define SS_SYMBOLIZE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_SEGMENT_NONE UINT32_MAX

struct ss_range {
	uint64_t start;
	uint64_t end; /* exclusive; empty ranges are ignored */
	uint32_t value;
};

struct ss_segments {
	uint64_t *starts; /* separate from values, because a search reads only these */
	uint32_t *values;
	size_t count;
};

/* Sorts ranges by start in linear time; ranges with equal starts keep their order. False
   without memory, with nothing changed. */
bool ss_ranges_sort(struct ss_range *ranges, size_t count);

/* Builds segments from ranges that are sorted by start; of equal starts the later range
   wins. False without memory, with segments empty. */
bool ss_segments_build(struct ss_segments *segments, const struct ss_range *ranges,
		       size_t count);

/* The same, but of overlapping ranges the one with the greatest value wins. Values are
   unique. O(n log n). */
bool ss_segments_build_by_value(struct ss_segments *segments,
				const struct ss_range *ranges, size_t count);
void ss_segments_free(struct ss_segments *segments);

/* The index of the first segment that begins after address, or the number of segments. */
size_t ss_segments_after(const struct ss_segments *segments, uint64_t address);

/* The value of the range that covers address, or SS_SEGMENT_NONE. */
uint32_t ss_segments_find(const struct ss_segments *segments, uint64_t address);

#endif
