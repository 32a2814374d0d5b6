#include "process/process_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "process/target.h"

/* UIO_MAXIOV; more are refused with EINVAL. */
enum { PIECES_MAX = 1024 };

/* Of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst). */
enum { PAGE_SHIFT = 12, PAGE_SIZE = 1 << PAGE_SHIFT, ENTRIES_MAX = 64 };
static const uint64_t page_is_present = UINT64_C(1) << 63;
static const uint64_t page_is_swapped = UINT64_C(1) << 62;
/* With SWAPPED: perhaps a marker for userfaultfd, and not in swap. */
static const uint64_t page_is_marked = UINT64_C(1) << 57;

enum {
	/* Limits of what is read at once, in pages: some milliseconds, also from swap. */
	COST_MAX = 1024,
	COST_SWAPPED = 64,
	RUN_MAX = 256,
};

/* Calls process_vm_readv once. Returns the number of bytes, or -errno. */
static ssize_t read_batch(pid_t tid, struct ss_piece *pieces, size_t count)
{
	struct iovec local[PIECES_MAX];
	struct iovec remote[PIECES_MAX];

	for (size_t i = 0; i < count; i++) {
		struct ss_piece *p = &pieces[i];
		local[i].iov_base = (char *)p->bytes + p->done;
		local[i].iov_len = p->size - p->done;
		remote[i].iov_base = (void *)(uintptr_t)(p->address + p->done);
		remote[i].iov_len = p->size - p->done;
	}
	ssize_t n = process_vm_readv(tid, local, count, remote, count, 0);
	return n < 0 ? -errno : n;
}

/* Assigns the bytes read to the pieces. Returns how many pieces are complete. */
static size_t account(struct ss_piece *pieces, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		size_t left = pieces[i].size - pieces[i].done;
		size_t got = SS_MIN(bytes, left);
		pieces[i].done += got;
		bytes -= got;
		if (got < left)
			return i;
	}
	return count;
}

static void read_by_file(int mem_fd, struct ss_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count && mem_fd >= 0; i++) {
		ssize_t n = ss_io_pread(mem_fd, pieces[i].bytes, pieces[i].size,
					pieces[i].address);
		pieces[i].done = n > 0 ? (size_t)n : 0;
	}
}

void ss_process_memory_read(const struct ss_process_memory *memory,
			    struct ss_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++)
		pieces[i].done = 0;
	while (count > 0) {
		size_t batch = SS_MIN(count, (size_t)PIECES_MAX);
		ssize_t n = read_batch(memory->tid, pieces, batch);
		if (n < 0 && n != -EFAULT) {
			read_by_file(memory->mem_fd, pieces, count);
			return;
		}
		/* A short read ends at an unreadable piece: skip it. */
		size_t complete = account(pieces, batch, n > 0 ? (size_t)n : 0);
		complete += complete < batch;
		pieces += complete;
		count -= complete;
	}
}

/* Entries of the pagemap that were read last. */
struct window {
	uint64_t first; /* page */
	size_t count;
	uint64_t entries[ENTRIES_MAX];
};

/* The entry of a page, of wanted ones that will be asked for. 0: it cannot be read, since
   the program has ended or executed another one. */
static uint64_t find_entry(const struct ss_process_memory *memory, struct window *window,
			   uint64_t page, uint64_t wanted)
{
	if (page - window->first >= window->count) {
		size_t count = memory->ahead ?
				       (size_t)ENTRIES_MAX :
				       (size_t)SS_MIN(wanted, (uint64_t)ENTRIES_MAX);
		ssize_t n = pread(memory->pagemap_fd, window->entries,
				  count * sizeof(window->entries[0]),
				  (off_t)(page * sizeof(window->entries[0])));
		window->first = page;
		window->count = n > 0 ? (size_t)n / sizeof(window->entries[0]) : 0;
		if (window->count == 0)
			return 0;
	}
	return window->entries[page - window->first];
}

/* A part of a piece whose pages are all present. The last part of each piece ends where the
   piece is to end, and may be empty. */
struct part {
	struct ss_piece *piece;
	size_t at; /* in the piece */
};

/* Parts of pieces that are read together. */
struct parts {
	const struct ss_process_memory *memory;
	/* The second one is for pieces in a single page: threads often wait for locks in
	   the same page. */
	struct window windows[2];
	struct ss_piece reads[PIECES_MAX]; /* one for each item */
	struct part items[PIECES_MAX];
	size_t count;
	size_t cost;
};

static bool is_late(const struct ss_process_memory *memory)
{
	return memory->deadline_ns && ss_now_ns() >= memory->deadline_ns;
}

static void read_parts(struct parts *parts)
{
	bool late = is_late(parts->memory);

	if (!late)
		ss_process_memory_read(parts->memory, parts->reads, parts->count);
	for (size_t i = 0; i < parts->count; i++) {
		struct ss_piece *piece = parts->items[i].piece;
		size_t done = late ? 0 : parts->reads[i].done;
		if (piece->end == SS_PIECE_UNREADABLE || piece->end == SS_PIECE_LATE)
			continue; /* an earlier part was not read */
		piece->done = parts->items[i].at + done;
		if (done < parts->reads[i].size)
			piece->end = late ? SS_PIECE_LATE : SS_PIECE_UNREADABLE;
	}
	parts->count = parts->cost = 0;
}

static void add_part(struct parts *parts, struct ss_piece *piece, size_t at, size_t size,
		     size_t cost)
{
	if (parts->count == PIECES_MAX || parts->cost >= COST_MAX)
		read_parts(parts);
	parts->reads[parts->count] =
		(struct ss_piece){ .address = piece->address + at,
				   .bytes = (char *)piece->bytes + at,
				   .size = size };
	parts->items[parts->count++] = (struct part){ .piece = piece, .at = at };
	parts->cost += cost;
}

/* A sequence of pages that are alike. */
struct run {
	size_t size; /* in bytes of the piece */
	size_t cost;
	bool present;
};

/* The run that begins at an offset of a piece. */
static struct run find_run(struct parts *parts, const struct ss_piece *piece, size_t at)
{
	uint64_t address = piece->address + at;
	uint64_t page = address >> PAGE_SHIFT;
	uint64_t end = (piece->address + piece->size + PAGE_SIZE - 1) >> PAGE_SHIFT;
	bool single = (piece->address + piece->size - 1) >> PAGE_SHIFT ==
		      piece->address >> PAGE_SHIFT;
	struct window *window = &parts->windows[single];
	struct run run = {};

	for (uint64_t i = page; i < end && i - page < RUN_MAX; i++) {
		uint64_t entry = find_entry(parts->memory, window, i, end - i);
		bool swapped = (entry & page_is_swapped) && !(entry & page_is_marked);
		bool present = (entry & page_is_present) ||
			       (swapped && !parts->memory->no_swap);
		if (i > page && present != run.present)
			break;
		run.present = present;
		run.cost += swapped ? (size_t)COST_SWAPPED : 1;
		run.size = (size_t)SS_MIN(((i + 1) << PAGE_SHIFT) - address,
					  (uint64_t)(piece->size - at));
	}
	return run;
}

static void mark_absent(struct ss_piece *piece, size_t at, size_t size)
{
	uint64_t first = piece->address >> PAGE_SHIFT;
	uint64_t page = (piece->address + at) >> PAGE_SHIFT;
	uint64_t end = (piece->address + at + size + PAGE_SIZE - 1) >> PAGE_SHIFT;

	if (!piece->zeroed)
		memset((char *)piece->bytes + at, 0, size);
	piece->has_absent = true;
	for (; page < end; page++)
		piece->absent[(page - first) / 8] |=
			(uint8_t)(1u << ((page - first) % 8));
}

/* Adds what can be read of a piece without waiting. */
static void add_piece(struct parts *parts, struct ss_piece *piece)
{
	struct run run = {};
	size_t at = 0;

	if (piece->address > UINT64_MAX - PAGE_SIZE - piece->size) {
		piece->end = SS_PIECE_UNREADABLE; /* the end of the address space */
		return;
	}
	for (; at < piece->size; at += run.size) {
		run = find_run(parts, piece, at);
		if (run.present) {
			add_part(parts, piece, at, run.size, run.cost);
		} else if (piece->absent) {
			mark_absent(piece, at, run.size);
		} else {
			piece->end = SS_PIECE_ABSENT;
			break;
		}
	}
	if (!run.present)
		add_part(parts, piece, at, 0, 0);
}

void ss_process_memory_read_present(const struct ss_process_memory *memory,
				    struct ss_piece *pieces, size_t count)
{
	struct parts parts;

	parts.memory = memory;
	parts.windows[0].count = parts.windows[1].count = 0;
	parts.count = parts.cost = 0;
	for (size_t i = 0; i < count; i++) {
		struct ss_piece *piece = &pieces[i];
		piece->done = 0;
		piece->end = SS_PIECE_COMPLETE;
		piece->has_absent = false;
		if (memory->pagemap_fd >= 0) {
			add_piece(&parts, piece);
			continue;
		}
		for (size_t at = 0; at == 0 || at < piece->size;
		     at += RUN_MAX * PAGE_SIZE)
			add_part(&parts, piece, at,
				 SS_MIN(piece->size - at, (size_t)RUN_MAX * PAGE_SIZE),
				 RUN_MAX);
	}
	read_parts(&parts);
}

void ss_process_memory_peek(pid_t tid, struct ss_piece *piece)
{
	piece->done = 0;
	while (piece->done < piece->size) {
		errno = 0;
		long word = ptrace(PTRACE_PEEKDATA, tid, piece->address + piece->done, 0);
		if (errno != 0)
			return;
		size_t n = SS_MIN(piece->size - piece->done, sizeof(word));
		memcpy((char *)piece->bytes + piece->done, &word, n);
		piece->done += n;
	}
}

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
