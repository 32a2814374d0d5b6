#include "process/page_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	PAGE = 4096,
	SLOTS = 512, /* a power of two */
	PROBES = 8,
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

static uint32_t first_slot(uint64_t page)
{
	return (uint32_t)(page * 0x9e3779b97f4a7c15u >> 32) % SLOTS;
}

/* The slot of a page, or NULL. */
static struct slot *find_slot(struct ss_page_cache *cache, uint64_t page)
{
	for (uint32_t i = 0; i < PROBES; i++) {
		struct slot *slot = &cache->slots[(first_slot(page) + i) % SLOTS];
		if (slot->page == page && slot->generation == cache->generation)
			return slot;
	}
	return NULL;
}

/* A slot for another page: one that is empty, or that no piece of this batch needs. NULL: none. */
static struct slot *find_room(struct ss_page_cache *cache, uint64_t page)
{
	struct slot *found = NULL;

	for (uint32_t i = 0; i < PROBES; i++) {
		struct slot *slot = &cache->slots[(first_slot(page) + i) % SLOTS];
		if (slot->generation != cache->generation)
			return slot;
		if (slot->wanted != cache->batch)
			found = slot;
	}
	return found;
}

static bool is_cacheable(const struct ss_piece *piece)
{
	return piece->size > 0 && piece->size <= PIECE_MAX &&
	       piece->address <= UINT64_MAX - piece->size;
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

/* Takes the slot of a page, which is read with others if it is missing. False: other pages of
   this batch have it. */
static bool take_slot(struct ss_page_cache *cache, uint64_t page)
{
	struct slot *slot = find_slot(cache, page);

	if (slot) {
		slot->wanted = cache->batch;
		return true;
	}
	slot = find_room(cache, page);
	if (!slot)
		return false;
	*slot = (struct slot){ .page = page,
			       .generation = cache->generation,
			       .wanted = cache->batch };
	const uint32_t index = (uint32_t)(slot - cache->slots);
	cache->missing[cache->missing_count] = (struct ss_piece){
		.address = page * PAGE, .bytes = cache->bytes[index], .size = PAGE
	};
	cache->missing_slots[cache->missing_count++] = index;
	return true;
}

static void copy_piece(struct ss_page_cache *cache, struct ss_piece *piece)
{
	piece->done = 0;
	while (piece->done < piece->size) {
		const uint64_t address = piece->address + piece->done;
		const uint64_t page = address / PAGE;
		const size_t at = address % PAGE;
		const struct slot *slot = find_slot(cache, page);
		if (!slot || !slot->present)
			return;
		size_t n = SS_MIN(piece->size - piece->done, PAGE - at);
		memcpy((uint8_t *)piece->bytes + piece->done,
		       cache->bytes[slot - cache->slots] + at, n);
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
		/* Nothing is needed now, so there is room for two pages. */
		if (cacheable && take_slots(cache, &pieces[i]))
			continue;
		ss_process_memory_read_present(memory, &pieces[i], 1);
		begin = i + 1;
	}
	copy_batch(cache, memory, pieces + begin, count - begin);
}
