#include "runtime/hotspot/zgc.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/load.h"

enum {
	WORD = 8,
	HEAP_BYTES_MAX = 1 << 17,    /* of ZHeap, which has 16,000 */
	GENERATION_BYTES = 4 * WORD, /* up to what is moved, and a word of that */
	GRANULE_SHIFT = 21,
	/* A pointer: one of four bits, after which the address begins */
	REMEMBERED_BITS = 3 << 4,
	REMAPPED_SHIFT = 12,
	REMAPPED_BITS = 4,
	COLOUR_BITS = 16,
	YOUNG_CHANGED = 1,
	OLD_CHANGED = 2,
	ALIGNMENT_SHIFT = 3,
	/* An entry of what was moved: whether it is set, to where, from where */
	ENTRY_SET = 1,
	ENTRY_TO_SHIFT = 1,
	ENTRY_TO_BITS = 45,
	ENTRY_FROM_SHIFT = 46,
	ENTRIES_MAX = 1 << 20,
	ENTRIES_AT_ONCE = 16,
	PROBES_MAX = 1024,
	FORWARDING_BYTES_MAX = 512,
};

/* Finding it --------------------------------------------------------------- */

/* ZHeap begins with what allocates pages, and has a table of pages. Each generation, which is in
   ZHeap, too, begins with its number, the addresses of both, and its table of what is moved. */
static bool find_generations(struct ss_hotspot_zgc *zgc, uint64_t heap)
{
	const uint64_t *values = zgc->layout->at;
	const uint64_t size = values[SS_HOTSPOT_ZGC_HEAP_BYTES];
	const uint64_t map = values[SS_HOTSPOT_ZGC_GRANULES];
	struct ss_hotspot_moves *const generations[] = { &zgc->young, &zgc->old };
	size_t found = 0;

	if (size > HEAP_BYTES_MAX || map > GENERATION_BYTES)
		return false;
	_cleanup_free_ uint8_t *bytes = malloc(size);
	if (!bytes || !ss_memory_read(zgc->fresh, heap, bytes, size))
		return false;
	for (size_t at = 0; at + GENERATION_BYTES + map <= size; at += WORD) {
		if (bytes[at] >= SS_ARRAY_SIZE(generations) ||
		    ss_load_u64(bytes, at + WORD) != heap ||
		    ss_load_u64(bytes, at + 2ul * WORD) !=
			    heap + values[SS_HOTSPOT_ZGC_PAGES])
			continue;
		struct ss_hotspot_moves *moves = generations[bytes[at]];
		if (moves->entries)
			return false;
		moves->count = ss_load_u64(bytes, at + 3ul * WORD);
		moves->entries = ss_load_u64(bytes, at + 3ul * WORD + map);
		if (moves->count > (zgc->offset_mask + 1) >> GRANULE_SHIFT ||
		    !moves->entries || moves->entries % WORD != 0)
			return false;
		found++;
	}
	return found == SS_ARRAY_SIZE(generations);
}

bool ss_hotspot_zgc_init(struct ss_hotspot_zgc *zgc,
			 const struct ss_hotspot_layout *layout,
			 const struct ss_memory *fresh)
{
	const uint64_t *at = layout->at;
	uint64_t values;
	uint64_t mask_at;
	uint64_t heap;

	*zgc = (struct ss_hotspot_zgc){ .layout = layout, .fresh = fresh };
	/* Only the generational ZGC has this mask. */
	if (!at[SS_HOTSPOT_ZGC_AT] || !at[SS_HOTSPOT_ZGC_GOOD_MASK])
		return true;
	if (!ss_memory_read_u64(fresh, at[SS_HOTSPOT_ZGC_AT], &values) ||
	    !ss_memory_read_u64(fresh, values + at[SS_HOTSPOT_ZGC_OFFSET_MASK],
				&mask_at) ||
	    !ss_memory_read_u64(fresh, mask_at, &zgc->offset_mask))
		return false;
	/* With another collector, the values are 0. */
	zgc->used = zgc->offset_mask != 0;
	return !zgc->used ||
	       (at[SS_HOTSPOT_ZGC_FORWARDING_BYTES] &&
		(zgc->offset_mask & (zgc->offset_mask + 1)) == 0 &&
		zgc->offset_mask >> ENTRY_TO_BITS == 0 &&
		ss_memory_read_u64(fresh, values + at[SS_HOTSPOT_ZGC_GOOD_MASK],
				   &zgc->good_mask_at) &&
		ss_memory_read_u64(fresh, values + at[SS_HOTSPOT_ZGC_SHIFT],
				   &zgc->shift_at) &&
		ss_memory_read_u64(fresh, at[SS_HOTSPOT_GC_AT], &heap) &&
		find_generations(zgc, heap + at[SS_HOTSPOT_ZGC_HEAP]));
}

/* Objects that were moved --------------------------------------------------- */

/* Where in the table of a page an object has its entry, or after that: an integer hash of
   Thomas Wang. */
static uint32_t hash_index(uint32_t key)
{
	key = ~key + (key << 15);
	key ^= key >> 12;
	key += key << 2;
	key ^= key >> 4;
	key *= 2057;
	return key ^ (key >> 16);
}

/* Looks an object up in the table of its page. *ret: 0: it has not been moved. */
static bool find_entry(const struct ss_hotspot_zgc *zgc, uint64_t entries,
		       uint64_t length, uint64_t from, uint64_t *ret)
{
	uint64_t index = hash_index((uint32_t)from) & (length - 1);

	for (int i = 0; i < PROBES_MAX;) {
		uint8_t bytes[ENTRIES_AT_ONCE * WORD];
		size_t count = SS_MIN((uint64_t)ENTRIES_AT_ONCE, length - index);
		if (!ss_memory_read(zgc->fresh, entries + index * WORD, bytes,
				    count * WORD))
			return false;
		for (size_t k = 0; k < count; k++) {
			uint64_t entry = ss_load_u64(bytes, k * WORD);
			*ret = 0;
			if (!(entry & ENTRY_SET))
				return true;
			*ret = entry;
			if (entry >> ENTRY_FROM_SHIFT == from)
				return true;
		}
		i += (int)count;
		index = (index + count) & (length - 1);
	}
	return false;
}

/* The table of the page that a collection of a generation moves, or has moved, from an address;
   *ret: 0: none. */
static bool find_forwarding(const struct ss_hotspot_zgc *zgc,
			    const struct ss_hotspot_moves *moves, uint64_t address,
			    uint64_t *ret)
{
	const uint64_t granule = (address & zgc->offset_mask) >> GRANULE_SHIFT;

	return granule < moves->count &&
	       ss_memory_read_u64(zgc->fresh, moves->entries + granule * WORD, ret);
}

/* Whether a word is in a struct. Offsets are the target's: one that it calls static has any value. */
static bool has_word(uint64_t size, uint64_t offset)
{
	return size >= WORD && offset <= size - WORD;
}

/* Where an object is that was at an address: the same one if it has not been moved yet. */
static bool follow(const struct ss_hotspot_zgc *zgc, uint64_t forwarding,
		   uint64_t address, uint64_t *ret)
{
	const uint64_t *at = zgc->layout->at;
	const uint64_t size = at[SS_HOTSPOT_ZGC_FORWARDING_BYTES];
	const uint64_t offset = address & zgc->offset_mask;
	uint8_t bytes[FORWARDING_BYTES_MAX];
	uint64_t entry;

	*ret = address;
	if (!forwarding)
		return true;
	if (size > sizeof(bytes) ||
	    !has_word(size, at[SS_HOTSPOT_ZGC_FORWARDING_START]) ||
	    !has_word(size, at[SS_HOTSPOT_ZGC_FORWARDING_SHIFT]) ||
	    !has_word(size, at[SS_HOTSPOT_ZGC_FORWARDING_LENGTH]) ||
	    !ss_memory_read(zgc->fresh, forwarding, bytes, size))
		return false;
	const uint64_t start = ss_load_u64(bytes, at[SS_HOTSPOT_ZGC_FORWARDING_START]);
	const uint64_t shift = ss_load_u64(bytes, at[SS_HOTSPOT_ZGC_FORWARDING_SHIFT]);
	const uint64_t length = ss_load_u64(bytes, at[SS_HOTSPOT_ZGC_FORWARDING_LENGTH]);
	if (offset < start || shift < ALIGNMENT_SHIFT || shift > GRANULE_SHIFT ||
	    length == 0 || length > ENTRIES_MAX || (length & (length - 1)) != 0)
		return false;
	const uint64_t from = (offset - start) >> shift;
	if (from >> (64 - ENTRY_FROM_SHIFT) != 0 ||
	    !find_entry(zgc, forwarding + size, length, from, &entry))
		return false;
	if (entry)
		*ret = (address & ~zgc->offset_mask) |
		       (entry >> ENTRY_TO_SHIFT & zgc->offset_mask &
			((UINT64_C(1) << ENTRY_TO_BITS) - 1));
	return true;
}

/* Pointers ------------------------------------------------------------------ */

/* Which of the four bits is set. */
static bool find_bit(uint64_t pointer, unsigned *ret)
{
	unsigned bits = pointer >> REMAPPED_SHIFT & ((1 << REMAPPED_BITS) - 1);

	if (bits == 0 || (bits & (bits - 1)) != 0)
		return false;
	*ret = (unsigned)__builtin_ctz(bits);
	return true;
}

/* The bit of pointers that need no look-up, at present. */
static bool read_good_bit(const struct ss_hotspot_zgc *zgc, unsigned *ret)
{
	uint64_t mask;
	uint64_t shift;

	return ss_memory_read_u64(zgc->fresh, zgc->good_mask_at, &mask) &&
	       find_bit(mask, ret) &&
	       ss_memory_read_u64(zgc->fresh, zgc->shift_at, &shift) &&
	       shift == REMAPPED_SHIFT + *ret + 1;
}

/* The number of the bit has two digits: the lower one changes with each collection of the young
   generation, the higher one with each of the old one. */
static bool follow_stale(const struct ss_hotspot_zgc *zgc, uint64_t pointer,
			 uint64_t address, unsigned changed, uint64_t *ret)
{
	const bool only_old = changed == OLD_CHANGED ||
			      (pointer & REMEMBERED_BITS) == REMEMBERED_BITS;
	uint64_t young = 0;
	uint64_t old = 0;

	if (changed != YOUNG_CHANGED && !find_forwarding(zgc, &zgc->old, address, &old))
		return false;
	if ((changed == YOUNG_CHANGED || !only_old) &&
	    !find_forwarding(zgc, &zgc->young, address, &young))
		return false;
	/* Which generation the object was of is not known. */
	if (young && old)
		return false;
	return follow(zgc, young ? young : old, address, ret);
}

bool ss_hotspot_zgc_find(const struct ss_hotspot_zgc *zgc, uint64_t pointer,
			 uint64_t *ret)
{
	unsigned bit;
	unsigned good;

	if (pointer >> COLOUR_BITS == 0) {
		*ret = 0;
		return true;
	}
	if (!find_bit(pointer, &bit) || !read_good_bit(zgc, &good))
		return false;
	const uint64_t address = pointer >> (REMAPPED_SHIFT + bit + 1);
	if (address % WORD != 0 || address <= zgc->offset_mask)
		return false;
	if (bit == good) {
		*ret = address;
		return true;
	}
	return follow_stale(zgc, pointer, address, bit ^ good, ret);
}

bool ss_hotspot_zgc_is_same(const struct ss_hotspot_zgc *zgc, uint64_t address,
			    uint64_t object)
{
	const struct ss_hotspot_moves *const both[] = { &zgc->young, &zgc->old };
	uint64_t forwarding;
	uint64_t moved;

	if (address == object)
		return true;
	for (size_t i = 0; i < SS_ARRAY_SIZE(both); i++) {
		if (find_forwarding(zgc, both[i], address, &forwarding) && forwarding &&
		    follow(zgc, forwarding, address, &moved) && moved == object)
			return true;
	}
	return false;
}
