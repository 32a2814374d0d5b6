#include "symbolize/segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"

/* A radix sort, because qsort() takes as long as everything else about a symbol table. */
enum { DIGIT_BITS = 11, DIGIT_COUNT = 1 << DIGIT_BITS, DIGITS = 6 };

struct histogram {
	size_t counts[DIGITS][DIGIT_COUNT];
};

static size_t digit_of(uint64_t address, size_t digit)
{
	return (size_t)(address >> (digit * DIGIT_BITS)) & (DIGIT_COUNT - 1);
}

static void count_digits(struct histogram *histogram, const struct ss_range *ranges,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t digit = 0; digit < DIGITS; digit++)
			histogram->counts[digit][digit_of(ranges[i].start, digit)]++;
	}
}

/* Sorts by one digit. */
static void sort_digit(size_t *counts, size_t digit, const struct ss_range *from,
		       struct ss_range *to, size_t count)
{
	size_t place = 0;

	for (size_t i = 0; i < DIGIT_COUNT; i++) {
		size_t next = place + counts[i];
		counts[i] = place;
		place = next;
	}
	for (size_t i = 0; i < count; i++)
		to[counts[digit_of(from[i].start, digit)]++] = from[i];
}

bool ss_ranges_sort(struct ss_range *ranges, size_t count)
{
	_cleanup_free_ struct histogram *histogram = calloc(1, sizeof(*histogram));
	_cleanup_free_ struct ss_range *other = calloc(count + 1, sizeof(*other));
	struct ss_range *from = ranges;
	struct ss_range *to = other;

	if (!histogram || !other)
		return false;
	count_digits(histogram, ranges, count);
	for (size_t digit = 0; digit < DIGITS && count; digit++) {
		size_t *counts = histogram->counts[digit];
		/* Usually all ranges have the same upper digits. */
		if (counts[digit_of(from[0].start, digit)] == count)
			continue;
		sort_digit(counts, digit, from, to, count);
		struct ss_range *swap = from;
		from = to;
		to = swap;
	}
	if (from != ranges)
		memcpy(ranges, from, count * sizeof(*ranges));
	return true;
}

static void emit(struct ss_segments *segments, uint64_t start, uint32_t value)
{
	size_t count = segments->count;

	if (count && segments->starts[count - 1] == start)
		count--;
	if (count && segments->values[count - 1] == value) {
		segments->count = count;
		return;
	}
	segments->starts[count] = start;
	segments->values[count] = value;
	segments->count = count + 1;
}

/* Pops the ranges that end at or before address. Where one ends, the next one on the stack
   that is still open continues. */
static size_t end_ranges(struct ss_segments *segments, const struct ss_range **stack,
			 size_t depth, uint64_t address)
{
	while (depth && stack[depth - 1]->end <= address) {
		uint64_t end = stack[depth - 1]->end;
		while (depth && stack[depth - 1]->end <= end)
			depth--;
		emit(segments, end, depth ? stack[depth - 1]->value : SS_SEGMENT_NONE);
	}
	return depth;
}

/* Each range begins one segment and ends at most one. */
static bool make_segments(struct ss_segments *segments, size_t count)
{
	*segments = (struct ss_segments){
		.starts = calloc(2 * count + 1, sizeof(*segments->starts)),
		.values = calloc(2 * count + 1, sizeof(*segments->values)),
	};
	if (segments->starts && segments->values)
		return true;
	ss_segments_free(segments);
	return false;
}

bool ss_segments_build(struct ss_segments *segments, const struct ss_range *ranges,
		       size_t count)
{
	_cleanup_free_ const struct ss_range **stack = calloc(count + 1, sizeof(*stack));
	size_t depth = 0;

	*segments = (struct ss_segments){};
	if (!stack || !make_segments(segments, count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].end <= ranges[i].start)
			continue;
		depth = end_ranges(segments, stack, depth, ranges[i].start);
		emit(segments, ranges[i].start, ranges[i].value);
		stack[depth++] = &ranges[i];
	}
	(void)end_ranges(segments, stack, depth, UINT64_MAX); /* all of them end */
	return true;
}

/* A binary heap of ranges, the one with the greatest value on top. */
struct heap {
	const struct ss_range **items;
	size_t count;
};

static void swap_items(struct heap *heap, size_t a, size_t b)
{
	const struct ss_range *item = heap->items[a];

	heap->items[a] = heap->items[b];
	heap->items[b] = item;
}

static void heap_push(struct heap *heap, const struct ss_range *range)
{
	size_t at = heap->count++;

	heap->items[at] = range;
	while (at && heap->items[(at - 1) / 2]->value < heap->items[at]->value) {
		swap_items(heap, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

static void heap_pop(struct heap *heap)
{
	size_t at = 0;

	heap->items[0] = heap->items[--heap->count];
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= heap->count)
			return;
		if (child + 1 < heap->count &&
		    heap->items[child + 1]->value > heap->items[child]->value)
			child++;
		if (heap->items[child]->value <= heap->items[at]->value)
			return;
		swap_items(heap, at, child);
		at = child;
	}
}

bool ss_segments_build_by_value(struct ss_segments *segments,
				const struct ss_range *ranges, size_t count)
{
	_cleanup_free_ const struct ss_range **items = calloc(count + 1, sizeof(*items));
	struct heap heap = { .items = items };
	size_t next = 0;

	*segments = (struct ss_segments){};
	if (!items || !make_segments(segments, count))
		return false;
	while (next < count || heap.count) {
		/* Where the topmost range ends or the next one begins. */
		uint64_t at = heap.count ? heap.items[0]->end : UINT64_MAX;
		if (next < count)
			at = SS_MIN(at, ranges[next].start);
		for (; next < count && ranges[next].start <= at; next++) {
			if (ranges[next].end > ranges[next].start)
				heap_push(&heap, &ranges[next]);
		}
		while (heap.count && heap.items[0]->end <= at)
			heap_pop(&heap);
		emit(segments, at, heap.count ? heap.items[0]->value : SS_SEGMENT_NONE);
	}
	return true;
}

void ss_segments_free(struct ss_segments *segments)
{
	free(segments->starts);
	free(segments->values);
	*segments = (struct ss_segments){};
}

size_t ss_segments_after(const struct ss_segments *segments, uint64_t address)
{
	return ss_lower_bound(segments->count, i, segments->starts[i] <= address);
}

uint32_t ss_segments_find(const struct ss_segments *segments, uint64_t address)
{
	size_t behind = ss_segments_after(segments, address);

	return behind ? segments->values[behind - 1] : SS_SEGMENT_NONE;
}
