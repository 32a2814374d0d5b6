#include "sampling/page_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	PAGE = 4096,
	SLOTS = 256, /* a power of two */
	/* Larger pieces are read alone: they would displace others. */
	PIECE_MAX = PAGE,
};

struct slot {
	uint64_t page;
	uint32_t generation; /* it is valid if this is the cache's */
	uint32_t wanted;     /* by the batch of this number */
	bool present;
};

struct ss_page_cache {
	uint32_t generation;
	uint32_t batch; /* of pieces that are copied together */
	struct slot slots[SLOTS];
	struct ss_piece missing[SLOTS];
	uint32_t missing_slots[SLOTS];
	size_t missing_count;
	uint8_t bytes[SLOTS][PAGE];
};

struct ss_page_cache *ss_page_cache_new(void)
{
	struct ss_page_cache *cache = malloc(sizeof(*cache));

	if (!cache)
		return NULL;
	memset(cache, 0xff, sizeof(*cache)); /* touches it; zeros would be a calloc() */
	memset(cache->slots, 0, sizeof(cache->slots));
	cache->generation = cache->batch = 1;
	cache->missing_count = 0;
	return cache;
}

void ss_page_cache_free(struct ss_page_cache *cache)
{
	free(cache);
}

void ss_page_cache_clear(struct ss_page_cache *cache)
{
	cache->generation++;
	if (cache->generation > 0 && cache->batch < UINT32_MAX / 2)
		return;
	memset(cache->slots, 0, sizeof(cache->slots));
	cache->generation = cache->batch = 1;
}

static uint32_t slot_of(uint64_t page)
{
	return (uint32_t)(page + (page >> 8) * 37) % SLOTS;
}

static bool is_cacheable(const struct ss_piece *piece)
{
	return piece->size > 0 && piece->size <= PIECE_MAX &&
	       piece->address <= UINT64_MAX - piece->size;
}

static bool holds(const struct ss_page_cache *cache, uint64_t page)
{
	const struct slot *slot = &cache->slots[slot_of(page)];

	return slot->page == page && slot->generation == cache->generation;
}

static void read_missing(struct ss_page_cache *cache,
			 const struct ss_process_memory *memory)
{
	ss_process_memory_read_present(memory, cache->missing, cache->missing_count);
	for (size_t i = 0; i < cache->missing_count; i++)
		cache->slots[cache->missing_slots[i]].present = cache->missing[i].done ==
								PAGE;
	cache->missing_count = 0;
}

/* Takes the slot of a page, which is read with others if it is missing. False: another page of
   this batch has it. */
static bool take_slot(struct ss_page_cache *cache, uint64_t page)
{
	const uint32_t index = slot_of(page);
	struct slot *slot = &cache->slots[index];

	if (holds(cache, page)) {
		slot->wanted = cache->batch;
		return true;
	}
	if (slot->wanted == cache->batch)
		return false;
	*slot = (struct slot){ .page = page,
			       .generation = cache->generation,
			       .wanted = cache->batch };
	cache->missing[cache->missing_count] = (struct ss_piece){
		.address = page * PAGE, .bytes = cache->bytes[index], .size = PAGE
	};
	cache->missing_slots[cache->missing_count++] = index;
	return true;
}

static void copy_piece(const struct ss_page_cache *cache, struct ss_piece *piece)
{
	piece->done = 0;
	while (piece->done < piece->size) {
		const uint64_t address = piece->address + piece->done;
		const uint64_t page = address / PAGE;
		const size_t at = address % PAGE;
		if (!holds(cache, page) || !cache->slots[slot_of(page)].present)
			return;
		size_t n = SS_MIN(piece->size - piece->done, PAGE - at);
		memcpy((uint8_t *)piece->bytes + piece->done,
		       cache->bytes[slot_of(page)] + at, n);
		piece->done += n;
	}
}

/* Takes the slots of the pages of a piece. */
static bool take_slots(struct ss_page_cache *cache, const struct ss_piece *piece)
{
	const uint64_t first = piece->address / PAGE;
	const uint64_t last = (piece->address + piece->size - 1) / PAGE;

	return take_slot(cache, first) && (last == first || take_slot(cache, last));
}

/* Ends a batch: reads what is missing, and copies its pieces. */
static void copy_batch(struct ss_page_cache *cache,
		       const struct ss_process_memory *memory, struct ss_piece *pieces,
		       size_t count)
{
	if (cache->missing_count > 0)
		read_missing(cache, memory);
	for (size_t i = 0; i < count; i++)
		copy_piece(cache, &pieces[i]);
	cache->batch++;
}

void ss_page_cache_read(struct ss_page_cache *cache,
			const struct ss_process_memory *memory, struct ss_piece *pieces,
			size_t count)
{
	size_t begin = 0; /* of the batch */

	for (size_t i = 0; i < count; i++) {
		const bool cacheable = is_cacheable(&pieces[i]);
		if (cacheable && take_slots(cache, &pieces[i]))
			continue;
		copy_batch(cache, memory, pieces + begin, i - begin);
		begin = i;
		/* Two pages that follow one another have different slots. */
		if (cacheable && take_slots(cache, &pieces[i]))
			continue;
		ss_process_memory_read_present(memory, &pieces[i], 1);
		begin = i + 1;
	}
	copy_batch(cache, memory, pieces + begin, count - begin);
}
