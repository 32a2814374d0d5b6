/*
 * Ranges of addresses that may overlap, turned into a sorted list of segments that do
 * not, so that a look-up is one binary search. Where ranges overlap, the one that
 * begins last wins, which is the innermost one in nested code, or else the one with the
 * greatest value. It takes ranges from hostile files: no order of starts and ends takes
 * long.
 */
#ifndef SS_SYMBOLIZE_SEGMENTS_H
#define SS_SYMBOLIZE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_SEGMENT_NONE UINT32_MAX

struct ss_range {
	uint64_t start;
	uint64_t end; /* exclusive; a range that is empty is left out */
	uint32_t value;
};

struct ss_segments {
	uint64_t *starts; /* apart from values: a search touches these only */
	uint32_t *values;
	size_t count;
};

/* Sorts ranges by start; those with equal starts keep their order. Linear time. False
   without memory, and then nothing is changed. */
bool ss_ranges_sort(struct ss_range *ranges, size_t count);

/* Lays out ranges, which are sorted by start; of those with equal starts, the later
   one wins. False without memory, and then segments is empty. */
bool ss_segments_build(struct ss_segments *segments, const struct ss_range *ranges,
		       size_t count);

/* The same, but where ranges overlap the one with the greatest value wins, wherever it
   begins. Values are unique. In n log n. */
bool ss_segments_build_by_value(struct ss_segments *segments,
				const struct ss_range *ranges, size_t count);
void ss_segments_free(struct ss_segments *segments);

/* The number of the first segment that begins behind address, or how many there are. */
size_t ss_segments_behind(const struct ss_segments *segments, uint64_t address);

/* The value of the range that covers address, or SS_SEGMENT_NONE. */
uint32_t ss_segments_find(const struct ss_segments *segments, uint64_t address);

#endif
