#include "heap/malloc.h"

#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/cleanup.h"

/* struct malloc_state, from its bins on. */
enum {
	BINS = 127, /* lists, each a pair of pointers */
	PAIR = 2 * SS_GLIBC_WORD,
	NEXT = BINS * PAIR + 16, /* behind the bitmap of bins */
	SYSTEM = NEXT + 3 * SS_GLIBC_WORD,
	BINS_END = SYSTEM + 2 * SS_GLIBC_WORD,
	/* What precedes the bins: mutex, flags, fastbins, top, the last remainder */
	BEFORE_MIN = 3 * SS_GLIBC_WORD,
	BEFORE_MAX = 160,
	TOP = -2 * SS_GLIBC_WORD,
	FASTBINS = TOP - SS_GLIBC_FASTBINS * SS_GLIBC_WORD,
};

/* struct heap_info */
enum { HEAP_ARENA, HEAP_PREVIOUS, HEAP_SIZE, HEAP_WORDS };

/* struct malloc_par, in bytes before sbrk_base: four ints, then two words. Since 2.35 an int
   precedes these ints, and padding follows. */
enum {
	PAR_BYTES_MOST = 8, /* max_mmapped_mem */
	PAR_BYTES = 16,	    /* mmapped_mem */
	PAR_INTS = 32,	    /* n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn_threshold */
	PAR_INTS_NEW = 36,
};

enum {
	PAGE = 4096,
	ARENAS_MAX = 4096,
	/* Bins that are empty in most processes, the last ones are for large chunks. */
	LAST_BINS = 8,
};

/* Data of a module: glibc's has 8 KiB, that of a static program can be larger. */
#define DATA_MAX ((size_t)16 << 20)

static uint64_t word_at(const uint8_t *bytes, ptrdiff_t index)
{
	return ss_load_u64(bytes + index * SS_GLIBC_WORD, 0);
}

/* An empty list refers to itself as if it were a chunk, whose pointers follow its header. */
static bool is_empty(const uint8_t *bins, uint64_t address, ptrdiff_t bin)
{
	uint64_t self = address + (uint64_t)bin * PAIR - SS_GLIBC_HEADER;

	return word_at(bins, 2 * bin) == self && word_at(bins, 2 * bin + 1) == self;
}

static bool is_chunk_pointer(uint64_t address)
{
	return address != 0 && address % SS_GLIBC_ALIGNMENT == 0 && address >> 56 == 0;
}

/* Whether these are the bins of an arena. */
static bool are_bins(const uint8_t *bins, uint64_t address)
{
	int empty = 0;

	for (ptrdiff_t i = BINS - LAST_BINS; i < BINS; i++)
		empty += is_empty(bins, address, i);
	if (empty == 0)
		return false;
	for (ptrdiff_t i = 0; i < BINS; i++) {
		if (!is_empty(bins, address, i) &&
		    (!is_chunk_pointer(word_at(bins, 2 * i)) ||
		     !is_chunk_pointer(word_at(bins, 2 * i + 1))))
			return false;
	}
	return true;
}

/* Reads an arena, given the address of its bins and the bytes before them. False: it is not
   readable. */
static bool read_arena(const struct ss_memory *memory, uint64_t bins, uint64_t before,
		       struct ss_glibc_arena *ret)
{
	*ret = (struct ss_glibc_arena){ .address = bins - before,
					.end = bins + BINS_END };
	if (!ss_memory_read_u64(memory, bins + (uint64_t)TOP, &ret->top) ||
	    !ss_memory_read_u64(memory, bins + SYSTEM, &ret->size))
		return false;
	for (int i = 0; i < SS_GLIBC_FASTBINS; i++) {
		uint64_t at = bins + (uint64_t)(FASTBINS + i * SS_GLIBC_WORD);
		if (at < ret->address + SS_GLIBC_WORD ||
		    !ss_memory_read_u64(memory, at, &ret->fastbins[i]) ||
		    !is_chunk_pointer(ret->fastbins[i]))
			ret->fastbins[i] = 0;
	}
	return true;
}

/* Follows the circle of arenas; their description begins so many bytes before the bins. False
   if it does not return to the main one. *ret_failed: no memory. */
static bool read_arenas(struct ss_glibc_malloc *malloc, uint64_t bins, uint64_t before,
			bool *ret_failed)
{
	uint64_t main = bins - before;
	uint64_t at = main;

	malloc->arenas.count = 0;
	do {
		struct ss_glibc_arena *arena = ss_vector_push(&malloc->arenas);
		*ret_failed = !arena;
		if (!arena || !read_arena(malloc->memory, at + before, before, arena) ||
		    !ss_memory_read_u64(malloc->memory, at + before + NEXT, &at) ||
		    at % SS_GLIBC_WORD != 0 || at == 0 ||
		    (at != main && at % SS_GLIBC_HEAP >= PAGE))
			return false;
	} while (at != main && malloc->arenas.count < ARENAS_MAX);
	return at == main;
}

/* The description of another arena follows that of its first heap. */
static void measure_heap_header(struct ss_glibc_malloc *malloc)
{
	if (malloc->arenas.count > 1)
		malloc->heap_header = malloc->arenas.items[1].address % SS_GLIBC_HEAP;
}

static bool find_arenas(struct ss_glibc_malloc *malloc, const uint8_t *bytes, size_t size,
			uint64_t address, bool *ret_failed)
{
	for (size_t at = BEFORE_MIN; at + BINS_END <= size; at += SS_GLIBC_WORD) {
		if (!are_bins(bytes + at, address + at))
			continue;
		for (uint64_t before = BEFORE_MIN; before <= BEFORE_MAX;
		     before += SS_GLIBC_WORD) {
			if (read_arenas(malloc, address + at, before, ret_failed)) {
				measure_heap_header(malloc);
				return true;
			}
			if (*ret_failed)
				return false;
		}
	}
	return false;
}

/* Reads the counters before sbrk_base, if they are consistent. */
static bool read_counters(struct ss_glibc_malloc *malloc, const uint8_t *base,
			  size_t ints_at)
{
	enum { MAPS, MAPS_MAX, MAPS_MOST, FIXED, INTS };
	uint32_t ints[INTS];
	uint64_t most = word_at(base - PAR_BYTES_MOST, 0);

	memcpy(ints, base - ints_at, sizeof(ints));
	malloc->maps = ints[MAPS];
	malloc->map_bytes = word_at(base - PAR_BYTES, 0);
	malloc->counted = ints[MAPS] <= ints[MAPS_MOST] && ints[FIXED] <= 1 &&
			  ints[MAPS_MOST] <= ints[MAPS_MAX] &&
			  malloc->map_bytes <= most && malloc->map_bytes % PAGE == 0 &&
			  (malloc->maps == 0) == (malloc->map_bytes == 0);
	return malloc->counted;
}

/* Finds malloc's counters by the start of the memory that brk(2) manages. */
static void find_counters(struct ss_glibc_malloc *malloc, const uint8_t *bytes,
			  size_t size, uint64_t start)
{
	for (size_t at = PAR_INTS_NEW + SS_GLIBC_WORD - PAR_INTS_NEW % SS_GLIBC_WORD;
	     at + SS_GLIBC_WORD <= size; at += SS_GLIBC_WORD) {
		uint64_t base = word_at(bytes + at, 0);
		if (base - start >= PAGE ||
		    (!read_counters(malloc, bytes + at, PAR_INTS) &&
		     !read_counters(malloc, bytes + at, PAR_INTS_NEW)))
			continue;
		malloc->main_start = (base + SS_GLIBC_ALIGNMENT - 1) &
				     ~(uint64_t)(SS_GLIBC_ALIGNMENT - 1);
		return;
	}
}

/* Calls look() with the data of each module, until it returns true. */
struct search {
	const struct ss_capture *capture;
	struct ss_glibc_malloc *malloc;
	uint64_t heap;	/* the memory that brk(2) manages; or 0 */
	bool libc_only; /* else all other modules */
	bool failed;	/* no memory */
};

static bool is_libc(const struct ss_module_impl *module)
{
	const char *name = ss_path_base(module->path);

	return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0;
}

static bool is_data(const struct search *search, const struct ss_area *area)
{
	return area->module >= 0 && !area->shared && (area->prot & PROT_WRITE) &&
	       area->end - area->start <= DATA_MAX &&
	       is_libc(search->capture->modules.items[area->module]) == search->libc_only;
}

static bool look(struct search *search, const struct ss_area *area)
{
	size_t size = (size_t)(area->end - area->start);
	_cleanup_free_ uint8_t *bytes = calloc(1, size);
	struct ss_glibc_malloc *malloc = search->malloc;

	if (!bytes) {
		search->failed = true;
		return false;
	}
	size = malloc->memory->read(malloc->memory, area->start, bytes, size);
	if (!find_arenas(malloc, bytes, size, area->start, &search->failed))
		return false;
	malloc->module = area->module;
	if (search->heap)
		find_counters(malloc, bytes, size, search->heap);
	return true;
}

static bool search_modules(struct search *search)
{
	const struct ss_capture *capture = search->capture;

	for (size_t i = 0; i < capture->areas.count && !search->failed; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		if (is_data(search, area) && look(search, area))
			return true;
	}
	return false;
}

static uint64_t find_heap(const struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->areas.count; i++) {
		if (strcmp(capture->areas.items[i].name, "[heap]") == 0)
			return capture->areas.items[i].start;
	}
	return 0;
}

bool ss_glibc_malloc_open(const struct ss_capture *capture,
			  const struct ss_memory *memory, struct ss_glibc_malloc *ret,
			  bool *ret_found)
{
	struct search search = { .capture = capture,
				 .malloc = ret,
				 .heap = find_heap(capture),
				 .libc_only = true };

	*ret = (struct ss_glibc_malloc){ .memory = memory, .module = -1 };
	*ret_found = search_modules(&search);
	search.libc_only = false; /* a static program */
	if (!*ret_found && !search.failed)
		*ret_found = search_modules(&search);
	if (*ret_found && !ret->main_start)
		ret->main_start = search.heap;
	return !search.failed;
}

void ss_glibc_malloc_close(struct ss_glibc_malloc *malloc)
{
	ss_vector_free(&malloc->arenas);
}

bool ss_glibc_heap_read(const struct ss_glibc_malloc *malloc,
			const struct ss_glibc_arena *arena, uint64_t address,
			struct ss_glibc_heap *ret)
{
	uint64_t start = address & ~(uint64_t)(SS_GLIBC_HEAP - 1);
	uint64_t words[HEAP_WORDS];

	if (!ss_memory_read(malloc->memory, start, words, sizeof(words)) ||
	    words[HEAP_ARENA] != arena->address || words[HEAP_SIZE] > SS_GLIBC_HEAP ||
	    words[HEAP_SIZE] < malloc->heap_header ||
	    words[HEAP_PREVIOUS] % SS_GLIBC_HEAP != 0)
		return false;
	*ret = (struct ss_glibc_heap){ .address = start,
				       .previous = words[HEAP_PREVIOUS],
				       .end = start + words[HEAP_SIZE] };
	return true;
}

enum {
	CHUNK_MIN = 32,
	CHUNK_FIRST = SS_GLIBC_HEADER / SS_GLIBC_WORD, /* word of the program's data */
	CHUNK_WORDS = CHUNK_FIRST + 1,
	/* What is searched after an inconsistent chunk, and how many chunks have to agree. */
	SEARCH_MAX = 1 << 20,
	AGREE = 16,
	READ_AGAIN = 3,
};

static const char changed[] = "it changed while it was read";
static const char absent[] = "it is not in memory, or must not be read";

/* A sequence is read in large pieces; elsewhere only one page. */
static bool fill(struct ss_glibc_window *window, uint64_t address, size_t size)
{
	bool next = address >= window->start &&
		    address - window->start < window->size + PAGE;
	uint64_t end = address + (next ? (uint64_t)SS_GLIBC_WINDOW : size + PAGE - 1);

	end &= ~(uint64_t)(PAGE - 1);
	if (end < address + size) /* on two pages */
		end = address + size;
	window->start = address;
	window->size = window->memory->read(window->memory, address, window->bytes,
					    (size_t)(end - address));
	return window->size >= size;
}

bool ss_glibc_window_read(struct ss_glibc_window *window, uint64_t address,
			  uint64_t *words, size_t count)
{
	size_t size = count * SS_GLIBC_WORD;

	if (address > UINT64_MAX - 2 * (uint64_t)SS_GLIBC_WINDOW)
		return false;
	if ((address < window->start || address - window->start > window->size ||
	     size > window->size - (size_t)(address - window->start)) &&
	    !fill(window, address, size))
		return false;
	memcpy(words, window->bytes + (address - window->start), size);
	return true;
}

/* A chunk that begins at an address, from its header. */
struct header {
	uint64_t previous_size; /* valid if the previous chunk is free */
	uint64_t size;
	uint64_t flags;
	uint64_t first;
};

static bool read_header(const struct ss_glibc_walk *walk, uint64_t address,
			struct header *ret)
{
	uint64_t words[CHUNK_WORDS] = {};
	/* At the end there is no more than the header. */
	size_t count = walk->end - address > SS_GLIBC_HEADER ? (size_t)CHUNK_WORDS :
							       (size_t)CHUNK_FIRST;

	if (!ss_glibc_window_read(walk->window, address, words, count))
		return false;
	*ret = (struct header){ .previous_size = words[0],
				.size = words[1] & ~(uint64_t)SS_GLIBC_FLAGS,
				.flags = words[1] & SS_GLIBC_FLAGS,
				.first = words[CHUNK_FIRST] };
	return true;
}

/* An open heap ends with a chunk of a header only, or of size 0. */
static bool is_mark(const struct ss_glibc_walk *walk, const struct header *header)
{
	return walk->open && header->size <= SS_GLIBC_HEADER;
}

static bool is_chunk(const struct ss_glibc_walk *walk, uint64_t address,
		     const struct header *header)
{
	return header->size >= CHUNK_MIN && header->size % SS_GLIBC_ALIGNMENT == 0 &&
	       header->size <= walk->end - address &&
	       !(header->flags & SS_GLIBC_IS_MAPPED);
}

/* Reads the chunk behind one, and whether that is consistent. */
static bool read_next(const struct ss_glibc_walk *walk, uint64_t address,
		      const struct header *header, struct header *next)
{
	uint64_t at = address + header->size;

	if (!is_chunk(walk, address, header) || !read_header(walk, at, next))
		return false;
	if (!(next->flags & SS_GLIBC_PREVIOUS_IN_USE) &&
	    next->previous_size != header->size)
		return false;
	return at == walk->end || is_mark(walk, next) || is_chunk(walk, at, next);
}

static bool agrees(const struct ss_glibc_walk *walk, uint64_t address)
{
	struct header header;
	struct header next;

	if (!read_header(walk, address, &header))
		return false;
	for (int i = 0; i < AGREE && address != walk->end; i++) {
		if (!read_next(walk, address, &header, &next))
			return false;
		address += header.size;
		header = next;
		if (is_mark(walk, &header))
			return true;
	}
	return true;
}

/* The next address at which chunks are consistent again, or the end. */
static uint64_t find_next(const struct ss_glibc_walk *walk, uint64_t address)
{
	uint64_t limit = address + SS_MIN(walk->end - address, (uint64_t)SEARCH_MAX);

	for (address += SS_GLIBC_ALIGNMENT; address < limit;
	     address += SS_GLIBC_ALIGNMENT) {
		if (agrees(walk, address))
			return address;
	}
	return walk->end;
}

/* Reads a chunk and the header behind it, again if they disagree. */
static bool read_chunk(const struct ss_glibc_walk *walk, uint64_t address,
		       struct header *header, struct header *next)
{
	for (int i = 0; i < READ_AGAIN; i++) {
		if (read_next(walk, address, header, next))
			return true;
		walk->window->size = 0;
		if (!read_header(walk, address, header))
			return false;
	}
	return false;
}

void ss_glibc_walk(struct ss_glibc_walk *walk)
{
	uint64_t address = walk->start;
	struct header header;
	struct header next;

	walk->unread = 0;
	walk->problem = NULL;
	while (address < walk->end) {
		bool found = read_header(walk, address, &header);
		while (found && address < walk->end && !is_mark(walk, &header) &&
		       read_chunk(walk, address, &header, &next)) {
			const struct ss_glibc_chunk chunk = {
				.address = address,
				.size = header.size,
				.free = !(next.flags & SS_GLIBC_PREVIOUS_IN_USE),
				.first = header.first,
			};
			walk->tell(walk->data, &chunk);
			address += header.size;
			header = next;
		}
		if (address >= walk->end || (found && is_mark(walk, &header)))
			return;
		uint64_t from = address;
		address = found ? find_next(walk, address) : walk->end;
		walk->unread += address - from;
		walk->problem = found ? changed : absent;
	}
}
