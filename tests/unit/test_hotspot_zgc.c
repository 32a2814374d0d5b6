/*
 * Pointers of the generational ZGC in memory that is made up: ZHeap with two generations, and a
 * page of which objects have been moved.
 */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/hotspot/hotspot.h"

enum {
	BASE = 0x10000,
	SIZE = 1 << 16,
	/* Addresses - BASE */
	INSTANCE = 0x10,
	VALUES = 0x100,
	MASK = 0x200,
	GOOD = 0x208,
	SHIFT = 0x210,
	COLLECTOR = 0x218,
	HEAP = 0x1000, /* of the collector: without its head */
	OLD = HEAP + 0x100,
	YOUNG = HEAP + 0x200,
	HEAP_BYTES = 0x300,
	PAGES = 0x40,
	OLD_MAP = 0x2000,
	YOUNG_MAP = 0x3000,
	FORWARDING = 0x4000,
	FORWARDING_BYTES = 0x40,
	GRANULES = 16,
	ENTRIES = 64,
	/* The bits of pointers: neither collection, one of the young generation, ... */
	FRESH = 0,
	YOUNG_CHANGED = 1,
	OLD_CHANGED = 2,
	BOTH_CHANGED = 3,
};

#define HEAP_BASE (UINT64_C(1) << 42)

static uint8_t bytes[SIZE];

static size_t read_bytes(const struct ss_memory *memory, uint64_t address, void *ret,
			 size_t size)
{
	(void)memory;
	return unit_copy(ret, size, bytes, SIZE, address - BASE);
}

static const struct ss_memory memory = { .read = read_bytes };

static const struct ss_hotspot_layout layout = {
	.at = { [SS_HOTSPOT_ZGC_AT] = BASE + INSTANCE,
		[SS_HOTSPOT_ZGC_OFFSET_MASK] = 0,
		[SS_HOTSPOT_ZGC_GOOD_MASK] = 8,
		[SS_HOTSPOT_ZGC_SHIFT] = 16,
		[SS_HOTSPOT_GC_AT] = BASE + COLLECTOR,
		[SS_HOTSPOT_ZGC_HEAP] = 0x10,
		[SS_HOTSPOT_ZGC_HEAP_BYTES] = HEAP_BYTES,
		[SS_HOTSPOT_ZGC_PAGES] = PAGES,
		[SS_HOTSPOT_ZGC_GRANULES] = 8,
		[SS_HOTSPOT_ZGC_FORWARDING_BYTES] = FORWARDING_BYTES,
		[SS_HOTSPOT_ZGC_FORWARDING_START] = 0,
		[SS_HOTSPOT_ZGC_FORWARDING_SHIFT] = 16,
		[SS_HOTSPOT_ZGC_FORWARDING_LENGTH] = 24 }
};

static void put(uint64_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

static void put_generation(uint64_t at, uint8_t number, uint64_t map)
{
	put(at, 0xabcdef00 | number); /* what pads the number may be anything */
	put(at + 8, BASE + HEAP);
	put(at + 16, BASE + HEAP + PAGES);
	put(at + 24, GRANULES);
	put(at + 32, BASE + map);
}

/* Sets which colour is good. */
static void set_good(unsigned bit)
{
	put(GOOD, UINT64_C(1) << (12 + bit));
	put(SHIFT, 13 + bit);
}

static int make_heap(void **state)
{
	(void)state;
	memset(bytes, 0, sizeof(bytes));
	put(INSTANCE, BASE + VALUES);
	put(VALUES, BASE + MASK);
	put(VALUES + 8, BASE + GOOD);
	put(VALUES + 16, BASE + SHIFT);
	put(MASK, HEAP_BASE - 1);
	put(COLLECTOR, BASE + HEAP - 0x10);
	put_generation(OLD, 1, OLD_MAP);
	put_generation(YOUNG, 0, YOUNG_MAP);
	set_good(FRESH);
	return 0;
}

/* An object at an offset in the third granule was moved. The place of its entry is not known
   here: all others are of other objects. */
static void move(uint64_t map, uint64_t offset, uint64_t to)
{
	put(map + 2ul * 8, BASE + FORWARDING);
	put(FORWARDING, 2ul << 21);
	put(FORWARDING + 16, 3);
	put(FORWARDING + 24, ENTRIES);
	for (uint64_t i = 0; i < ENTRIES; i++)
		put(FORWARDING + FORWARDING_BYTES + i * 8, (0x20000 + i) << 46 | 1);
	put(FORWARDING + FORWARDING_BYTES + 17ul * 8, offset / 8 << 46 | to << 1 | 1);
}

static uint64_t color(uint64_t address, unsigned bit, uint64_t others)
{
	return address << (13 + bit) | UINT64_C(1) << (12 + bit) | others;
}

static uint64_t find(const struct ss_hotspot_zgc *zgc, uint64_t pointer)
{
	uint64_t found = 0;

	return ss_hotspot_zgc_find(zgc, pointer, &found) ? found : UINT64_MAX;
}

TEST_WITH(test_colors, make_heap, NULL)
{
	const uint64_t object = HEAP_BASE | 2ul << 21 | 0x1238;
	struct ss_hotspot_zgc zgc;

	assert_true(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	assert_true(zgc.used);
	/* Nothing is moved: each colour is that of the same address. */
	for (unsigned good = 0; good < 4; good++) {
		set_good(good);
		for (unsigned bit = 0; bit < 4; bit++) {
			assert_int_equal(find(&zgc, color(object, bit, 0)), object);
			assert_int_equal(find(&zgc, color(object, bit, 0xff0)), object);
		}
	}
	assert_int_equal(find(&zgc, 0), 0);
	assert_int_equal(find(&zgc, 0x1550), 0);
	assert_int_equal(find(&zgc, object), UINT64_MAX); /* no colour */
	assert_int_equal(find(&zgc, color(object, 0, 1ul << 15)), UINT64_MAX);
	assert_int_equal(find(&zgc, color(0x1238, 0, 0)), UINT64_MAX); /* no heap */
	assert_int_equal(find(&zgc, color(object + 1, 3, 0)), UINT64_MAX);
	put(SHIFT, 14); /* not that of the mask */
	assert_int_equal(find(&zgc, color(object, 3, 0)), UINT64_MAX);
}

TEST_WITH(test_moved, make_heap, NULL)
{
	const uint64_t before = HEAP_BASE | 2ul << 21 | 0x1238;
	const uint64_t after = HEAP_BASE | 7ul << 21 | 0x40;
	struct ss_hotspot_zgc zgc;

	assert_true(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	move(YOUNG_MAP, 0x1238, after - HEAP_BASE);
	assert_int_equal(find(&zgc, color(before, FRESH, 0)), before);
	assert_int_equal(find(&zgc, color(before, YOUNG_CHANGED, 0)), after);
	assert_int_equal(find(&zgc, color(before, OLD_CHANGED, 0)), before);
	assert_int_equal(find(&zgc, color(before, BOTH_CHANGED, 0)), after);
	/* From old to old */
	assert_int_equal(find(&zgc, color(before, BOTH_CHANGED, 0x30)), before);
	assert_true(ss_hotspot_zgc_is_same(&zgc, before, after));
	assert_true(ss_hotspot_zgc_is_same(&zgc, before, before));
	assert_false(ss_hotspot_zgc_is_same(&zgc, before + 8, after));
	/* One that has not been moved yet, of a page that is moved: no entry is free. */
	assert_int_equal(find(&zgc, color(before + 8, YOUNG_CHANGED, 0)), UINT64_MAX);
	for (uint64_t i = 0; i < ENTRIES; i++)
		put(FORWARDING + FORWARDING_BYTES + i * 8, 0);
	assert_int_equal(find(&zgc, color(before + 8, YOUNG_CHANGED, 0)), before + 8);

	/* Both generations have moved the page: whose the object was is not known. */
	put(OLD_MAP + 2ul * 8, BASE + FORWARDING);
	assert_int_equal(find(&zgc, color(before, BOTH_CHANGED, 0)), UINT64_MAX);
	assert_int_equal(find(&zgc, color(before, OLD_CHANGED, 0)), before);
}

TEST_WITH(test_broken, make_heap, NULL)
{
	const uint64_t before = HEAP_BASE | 2ul << 21 | 0x1238;
	struct ss_hotspot_zgc zgc;

	assert_true(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	move(YOUNG_MAP, 0x1238, 0x40);
	for (size_t i = 0; i < 4; i++) {
		static const struct {
			uint64_t at;
			uint64_t value;
		} faults[] = { { FORWARDING, 3ul << 21 },
			       { FORWARDING + 16, 64 },
			       { FORWARDING + 24, 48 },
			       { YOUNG_MAP + 2ul * 8, 0x10 } };
		move(YOUNG_MAP, 0x1238, 0x40);
		put(faults[i].at, faults[i].value);
		assert_int_equal(find(&zgc, color(before, YOUNG_CHANGED, 0)), UINT64_MAX);
	}
	/* Outside of the struct, as the table of a hostile process may say. */
	for (uint64_t back = 0; back < 16; back++) {
		struct ss_hotspot_layout outside = layout;
		outside.at[SS_HOTSPOT_ZGC_FORWARDING_START] = UINT64_MAX - back;
		move(YOUNG_MAP, 0x1238, 0x40);
		assert_true(ss_hotspot_zgc_init(&zgc, &outside, &memory));
		assert_int_equal(find(&zgc, color(before, YOUNG_CHANGED, 0)), UINT64_MAX);
	}
	assert_true(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	/* Outside of the tables */
	assert_int_equal(find(&zgc, color(HEAP_BASE | 16ul << 21, YOUNG_CHANGED, 0)),
			 UINT64_MAX);
	put(YOUNG, 2);
	assert_false(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	put(YOUNG, 1); /* a second old one */
	assert_false(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	put(MASK, 0);
	assert_true(ss_hotspot_zgc_init(&zgc, &layout, &memory));
	assert_false(zgc.used);
}
