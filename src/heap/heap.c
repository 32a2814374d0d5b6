/*
 * ss_heap_read(): what glibc's malloc(3) has allocated, by size and by C++ class.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/search.h"
#include "data/heap.h"
#include "data/pipeline.h"
#include "heap/malloc.h"
#include "runtime/late_memory.h"

enum {
	PAGE = 4096,
	/* Sizes of chunks up to this one are counted one by one, others by powers of 2. */
	EXACT_MAX = 1024,
	EXACT = EXACT_MAX / SS_GLIBC_ALIGNMENT,
	RANGES = 54,
	SIZES = EXACT + RANGES,
	CLASSES_MAX = 1 << 16,
	HEAPS_MAX = 1 << 16,
	LISTS_MAX = 1 << 16,	      /* chunks of one list */
	TYPE_MAX = 1024,	      /* bytes of a mangled name */
	TYPES_MAX = 4096,	      /* classes whose type information is read */
	CHUNK_OWN = 8,		      /* bytes of a chunk that the program cannot use */
	MIXED_MAX = 1 << 30,	      /* bytes of areas that are searched page by page */
	HEAD_WORDS = 3,		      /* size of the one before, own size, first word */
	HEADS = SS_MEMORY_RANGES_MAX, /* pages of such an area that are read together */
};

/* struct tcache_perthread_struct: counts, then the first allocation of each list. */
struct cache_layout {
	uint16_t count_size;
	uint16_t lists;
};

static const struct cache_layout cache_layouts[] = {
	{ 1, 64 }, /* glibc 2.26 */
	{ 2, 64 }, /* 2.30 */
	{ 2, 76 }, /* 2.42; the last 12 lists hold several sizes */
};

enum { CACHE_EXACT = 64, CACHE_WORDS_MAX = 96 };

/* A chunk that may be the cache of a thread. */
struct cache {
	uint64_t address; /* of its data */
	const struct cache_layout *layout;
};

struct census {
	struct ss_heap_impl *heap;
	const struct ss_capture *capture;
	const struct ss_memory *memory; /* with the files of modules */
	ss_memory_read_ranges_function *read_ranges;
	void *read_data;
	struct ss_glibc_malloc malloc;
	struct ss_glibc_window window;
	uint64_t counts[SIZES];
	uint64_t bytes[SIZES];
	struct ss_heap_arena *arena; /* that is being walked */
	SS_VECTOR(struct cache) caches;
	struct ss_hash classes;
	uint64_t data_start; /* all tables of virtual functions lie between these */
	uint64_t data_end;
	bool failed; /* no memory */
};

static void census_deinit(struct census *census)
{
	ss_glibc_malloc_close(&census->malloc);
	ss_vector_free(&census->caches);
	ss_hash_deinit(&census->classes);
}

/* Sizes ------------------------------------------------------------------- */

static size_t size_index(uint64_t size)
{
	if (size <= EXACT_MAX)
		return (size_t)(size / SS_GLIBC_ALIGNMENT) - 1;
	/* 1,040 to 2,048 is the first range. */
	return EXACT + (size_t)(63 - __builtin_clzll((size - 1) / EXACT_MAX));
}

static void size_limits(size_t index, uint64_t *min, uint64_t *max)
{
	if (index < EXACT) {
		*max = (index + 1) * SS_GLIBC_ALIGNMENT;
		*min = *max - (SS_GLIBC_ALIGNMENT - 1);
	} else {
		*min = ((uint64_t)EXACT_MAX << (index - EXACT)) + 1;
		*max = (uint64_t)EXACT_MAX << (index - EXACT + 1);
	}
	*min -= SS_MIN(*min, (uint64_t)CHUNK_OWN);
	*max -= CHUNK_OWN;
}

static void count_size(struct census *census, uint64_t size)
{
	size_t index = SS_MIN(size_index(size), (size_t)SIZES - 1);

	census->counts[index]++;
	census->bytes[index] += size;
}

/* Classes ----------------------------------------------------------------- */

struct class_query {
	const struct census *census;
	uint64_t address;
};

static bool is_class(const void *context, uint32_t index)
{
	const struct class_query *query = context;

	return query->census->heap->classes.items[index].address == query->address;
}

/* Where a table of virtual functions may be: data of a module that is not written. */
static bool is_constant(const struct ss_area *area)
{
	return area->module >= 0 && !(area->prot & PROT_EXEC) && (area->prot & PROT_READ);
}

static void find_data(struct census *census)
{
	census->data_start = UINT64_MAX;
	for (size_t i = 0; i < census->capture->areas.count; i++) {
		const struct ss_area *area = &census->capture->areas.items[i];
		if (!is_constant(area))
			continue;
		census->data_start = SS_MIN(census->data_start, area->start);
		census->data_end = SS_MAX(census->data_end, area->end);
	}
}

static void add_class(struct census *census, uint64_t address, uint64_t size)
{
	const struct ss_area *area = ss_capture_find_area(census->capture, address);
	struct ss_heap_impl *heap = census->heap;

	if (!area || !is_constant(area))
		return;
	if (heap->classes.count == CLASSES_MAX) {
		heap->pub.classes_truncated = true;
		return;
	}
	struct ss_heap_class *class =
		ss_hash_reserve(&census->classes) ? ss_vector_push(&heap->classes) : NULL;
	if (!class) {
		census->failed = true;
		return;
	}
	const struct ss_module_impl *module =
		census->capture->modules.items[area->module];
	*class = (struct ss_heap_class){
		.address = address, .module = module->path, .count = 1, .bytes = size
	};
	ss_hash_insert(&census->classes, address / SS_GLIBC_WORD,
		       (uint32_t)(heap->classes.count - 1));
}

static void count_class(struct census *census, uint64_t address, uint64_t size)
{
	const struct class_query query = { census, address };

	if (address < census->data_start || address >= census->data_end ||
	    address % SS_GLIBC_WORD != 0)
		return;
	uint32_t index =
		ss_hash_find(&census->classes, address / SS_GLIBC_WORD, is_class, &query);
	if (index == SS_HASH_NONE) {
		add_class(census, address, size);
		return;
	}
	census->heap->classes.items[index].count++;
	census->heap->classes.items[index].bytes += size;
}

static int compare_classes(const void *a, const void *b)
{
	const struct ss_heap_class *x = a;
	const struct ss_heap_class *y = b;

	return SS_COMPARE(y->bytes, x->bytes) ?: SS_COMPARE(x->address, y->address);
}

/* The mangled name of the type whose table of virtual functions is at an address: before that
   are the offset to the top of the object, 0, and a pointer to struct std::type_info, whose
   second member is the name (Itanium C++ ABI, 2.5.2 and 2.9). NULL: there is none. */
static const char *read_type(const struct census *census, uint64_t address)
{
	enum { TOP, TYPE, WORDS };
	uint64_t words[WORDS];
	uint64_t name;
	char text[TYPE_MAX];

	if (!ss_memory_read(census->memory, address - sizeof(words), words,
			    sizeof(words)) ||
	    words[TOP] != 0 || words[TYPE] % SS_GLIBC_WORD != 0 ||
	    !ss_memory_read_u64(census->memory, words[TYPE] + SS_GLIBC_WORD, &name) ||
	    !ss_memory_read_string(census->memory, name, text, sizeof(text)))
		return NULL;
	/* GCC marks names that are to be compared by address. */
	const char *type = text + (text[0] == '*');
	return *type ? ss_intern_string(census->heap->strings, type) : NULL;
}

static bool find_origins(struct census *census)
{
	struct ss_heap_impl *heap = census->heap;

	if (!ss_vector_reserve(&heap->origins, heap->classes.count))
		return false;
	for (size_t i = 0; i < heap->classes.count; i++) {
		uint64_t address = heap->classes.items[i].address;
		const struct ss_area *area =
			ss_capture_find_area(census->capture, address);
		*(struct ss_heap_origin *)ss_vector_push(&heap->origins) =
			(struct ss_heap_origin){
				.module = area->module,
				.type = i < TYPES_MAX ? read_type(census, address) : NULL,
			};
	}
	return true;
}

/* Arenas ------------------------------------------------------------------ */

static void note_cache(struct census *census, const struct ss_glibc_chunk *chunk)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(cache_layouts); i++) {
		const struct cache_layout *layout = &cache_layouts[i];
		uint64_t size =
			layout->lists * (uint64_t)(layout->count_size + SS_GLIBC_WORD);
		uint64_t whole = (size + CHUNK_OWN + SS_GLIBC_ALIGNMENT - 1) &
				 ~(uint64_t)(SS_GLIBC_ALIGNMENT - 1);
		if (chunk->size != whole)
			continue;
		struct cache *cache = ss_vector_push(&census->caches);
		if (!cache) {
			census->failed = true;
			return;
		}
		cache->address = chunk->address + SS_GLIBC_HEADER;
		cache->layout = layout;
	}
}

static void count_chunk(void *data, const struct ss_glibc_chunk *chunk)
{
	struct census *census = data;

	if (chunk->free) {
		census->arena->free_count++;
		census->arena->free_bytes += chunk->size;
		return;
	}
	census->arena->used_count++;
	census->arena->used_bytes += chunk->size;
	count_size(census, chunk->size);
	count_class(census, chunk->first, chunk->size);
	note_cache(census, chunk);
}

static void walk(struct census *census, uint64_t start, uint64_t end, bool open)
{
	struct ss_glibc_walk walk = { .window = &census->window,
				      .start = start,
				      .end = end,
				      .open = open,
				      .tell = count_chunk,
				      .data = census };

	ss_glibc_walk(&walk);
	census->arena->unread_bytes += walk.unread;
	if (walk.problem)
		census->arena->problem = walk.problem;
}

/* The size of the last chunk, which is not in use. */
static void count_top(struct census *census, const struct ss_glibc_arena *arena)
{
	uint64_t header[SS_GLIBC_HEADER / SS_GLIBC_WORD];

	if (ss_glibc_window_read(&census->window, arena->top, header,
				 SS_ARRAY_SIZE(header)) &&
	    (header[1] & ~(uint64_t)SS_GLIBC_FLAGS) <= arena->size)
		census->arena->top_bytes = header[1] & ~(uint64_t)SS_GLIBC_FLAGS;
}

static void walk_main(struct census *census, const struct ss_glibc_arena *arena)
{
	uint64_t start = census->malloc.main_start;
	uint64_t known;

	if (start && arena->top > start && arena->top - start <= arena->size)
		walk(census, start, arena->top, false);
	known = census->arena->used_bytes + census->arena->free_bytes +
		census->arena->top_bytes + census->arena->unread_bytes;
	/* Where brk(2) fails, and between memory of others, malloc uses mappings. */
	if (known + PAGE < arena->size) {
		census->arena->unread_bytes += arena->size - known;
		census->arena->problem =
			"not all of it is in the memory that brk(2) manages";
	}
}

/* The chunks of the first heap of an arena follow its description, those of others the header
   of the heap. */
static void walk_heaps(struct census *census, const struct ss_glibc_arena *arena)
{
	const struct ss_glibc_malloc *malloc = &census->malloc;
	uint64_t first = arena->address & ~(uint64_t)(SS_GLIBC_HEAP - 1);
	uint64_t at = arena->top;
	struct ss_glibc_heap heap;

	for (int i = 0; i < HEAPS_MAX; i++) {
		if (!ss_glibc_heap_read(malloc, arena, at, &heap)) {
			census->arena->problem = "the list of its heaps is broken";
			return;
		}
		uint64_t start = heap.address == first ?
					 arena->end :
					 heap.address + malloc->heap_header;
		start = (start + SS_GLIBC_ALIGNMENT - 1) &
			~(uint64_t)(SS_GLIBC_ALIGNMENT - 1);
		bool last = i == 0; /* that has the top */
		uint64_t end = last ? arena->top : heap.end;
		if (start < end && end <= heap.end)
			walk(census, start, end, !last);
		if (heap.previous == 0)
			return;
		at = heap.previous;
	}
}

static void read_arena(struct census *census, size_t index)
{
	const struct ss_glibc_arena *arena = &census->malloc.arenas.items[index];

	census->arena = &census->heap->arenas.items[index];
	*census->arena = (struct ss_heap_arena){ .address = arena->address,
						 .main = index == 0,
						 .size = arena->size };
	if (arena->top == 0)
		return;
	count_top(census, arena);
	if (index == 0)
		walk_main(census, arena);
	else
		walk_heaps(census, arena);
}

/* Lists of cached chunks ---------------------------------------------------- */

/* The arena of a chunk, which need not be that of the thread whose cache has it; NULL: it
   changed meanwhile. */
static struct ss_heap_arena *arena_of(const struct census *census, uint64_t chunk)
{
	const struct ss_heap_impl *heap = census->heap;
	uint64_t word;

	if (!ss_memory_read_u64(census->memory, chunk + SS_GLIBC_WORD, &word))
		return NULL;
	if (!(word & SS_GLIBC_NOT_MAIN))
		return heap->arenas.items;
	if (!ss_memory_read_u64(census->memory, chunk & ~(uint64_t)(SS_GLIBC_HEAP - 1),
				&word))
		return NULL;
	for (size_t i = 0; i < heap->arenas.count; i++) {
		if (heap->arenas.items[i].address == word)
			return &heap->arenas.items[i];
	}
	return NULL;
}

/* A cached chunk looks like one in use. */
static void count_cached(struct census *census, uint64_t chunk, uint64_t size)
{
	size_t index = SS_MIN(size_index(size), (size_t)SIZES - 1);
	struct ss_heap_arena *arena = arena_of(census, chunk);

	if (!arena || census->counts[index] == 0 || census->bytes[index] < size ||
	    arena->used_count == 0 || arena->used_bytes < size)
		return; /* it changed meanwhile */
	census->counts[index]--;
	census->bytes[index] -= size;
	arena->used_count--;
	arena->used_bytes -= size;
	arena->cached_count++;
	arena->cached_bytes += size;
}

static bool read_size(const struct census *census, uint64_t chunk, uint64_t *ret)
{
	if (chunk % SS_GLIBC_ALIGNMENT != 0 ||
	    !ss_memory_read_u64(census->memory, chunk + SS_GLIBC_WORD, ret))
		return false;
	*ret &= ~(uint64_t)SS_GLIBC_FLAGS;
	return *ret > 0 && *ret % SS_GLIBC_ALIGNMENT == 0;
}

/* The next pointer of a list is stored as it is or, since glibc 2.32, XORed with its own
   address without the lower 12 bits: of these the one that leads to a chunk of this size.
   0: the end, or it leads nowhere. */
static uint64_t read_link(const struct census *census, uint64_t address,
			  uint64_t to_chunk, uint64_t size)
{
	enum { PROTECT_SHIFT = 12 };
	uint64_t stored;
	uint64_t found;

	if (!ss_memory_read_u64(census->memory, address, &stored) || stored == 0)
		return 0;
	const uint64_t candidates[] = { stored ^ (address >> PROTECT_SHIFT), stored };
	for (size_t i = 0; i < SS_ARRAY_SIZE(candidates); i++) {
		if (candidates[i] &&
		    read_size(census, candidates[i] - to_chunk, &found) && found == size)
			return candidates[i];
	}
	return 0;
}

/* Counts the chunks of a list, whose links are at an offset from where they point. */
static void count_list(struct census *census, uint64_t first, uint64_t to_chunk,
		       uint64_t size)
{
	uint64_t at = first;

	for (int i = 0; at && i < LISTS_MAX; i++) {
		count_cached(census, at - to_chunk, size);
		at = read_link(census, at + (SS_GLIBC_HEADER - to_chunk), to_chunk, size);
	}
}

static void count_fastbins(struct census *census, size_t index)
{
	const struct ss_glibc_arena *arena = &census->malloc.arenas.items[index];
	uint64_t size;

	for (int i = 0; i < SS_GLIBC_FASTBINS; i++) {
		if (arena->fastbins[i] && read_size(census, arena->fastbins[i], &size) &&
		    size == (uint64_t)(i + 2) * SS_GLIBC_ALIGNMENT)
			count_list(census, arena->fastbins[i], 0, size);
	}
}

/* The size of the chunks of a list; 0: it holds several sizes. */
static uint64_t size_of_list(size_t list)
{
	return list < CACHE_EXACT ? (list + 2) * SS_GLIBC_ALIGNMENT : 0;
}

/* Whether each pointer of a cache leads to a chunk of its list. */
static bool check_cache(const struct census *census, const struct cache *cache,
			uint64_t *first)
{
	uint64_t at = cache->address +
		      (uint64_t)cache->layout->count_size * cache->layout->lists;
	size_t lists = cache->layout->lists;
	uint64_t size;

	if (!ss_memory_read(census->memory, at, first, lists * sizeof(*first)))
		return false;
	for (size_t i = 0; i < lists; i++) {
		if (first[i] && (first[i] % SS_GLIBC_ALIGNMENT != 0 ||
				 !read_size(census, first[i] - SS_GLIBC_HEADER, &size) ||
				 (size_of_list(i) && size != size_of_list(i))))
			return false;
	}
	return true;
}

static void count_caches(struct census *census)
{
	uint64_t first[CACHE_WORDS_MAX];

	for (size_t i = 0; i < census->caches.count; i++) {
		const struct cache *cache = &census->caches.items[i];
		if (!check_cache(census, cache, first))
			continue;
		for (size_t k = 0; k < cache->layout->lists; k++) {
			if (first[k] && size_of_list(k))
				count_list(census, first[k], SS_GLIBC_HEADER,
					   size_of_list(k));
		}
	}
}

/* Allocations with mappings of their own -------------------------------------- */

static bool may_be_mapped(const struct ss_area *area)
{
	return area->module < 0 && !area->shared && strcmp(area->name, "//anon") == 0 &&
	       (area->prot & PROT_WRITE);
}

/* What is looked for in an area. */
struct mapped {
	bool everywhere; /* also behind pages of others, which share the area */
	bool count;	 /* add them to the census */
	uint64_t left;	 /* bytes that may still be searched */
	uint64_t found;
};

/* The first words of pages in sequence; 0 where a page is not in memory. */
struct heads {
	uint64_t start;
	uint64_t end;
	uint64_t words[HEADS][HEAD_WORDS];
};

/* Many questions are one: most pages of an area of others, such as a stack, are not in memory. */
static const uint64_t *read_head(const struct census *census, struct heads *heads,
				 uint64_t at, uint64_t end)
{
	struct ss_memory_range ranges[HEADS];

	if (at < heads->start || at >= heads->end) {
		size_t count = (size_t)SS_MIN((end - at) / PAGE, (uint64_t)HEADS);
		heads->start = at;
		heads->end = at + count * PAGE;
		memset(heads->words, 0, count * sizeof(*heads->words));
		for (size_t i = 0; i < count; i++)
			ranges[i] =
				(struct ss_memory_range){ .address = at + i * PAGE,
							  .bytes = heads->words[i],
							  .size = sizeof(*heads->words) };
		census->read_ranges(census->read_data, ranges, count);
	}
	return heads->words[(at - heads->start) / PAGE];
}

/* Such an allocation begins a page; neighbours share an area. */
static void read_mapped(struct census *census, const struct ss_area *area,
			struct mapped *mapped)
{
	struct ss_heap *heap = &census->heap->pub;
	struct heads heads;
	uint64_t size;

	heads.start = heads.end = 0;
	for (uint64_t at = area->start; at < area->end; at += size) {
		const uint64_t *words = read_head(
			census, &heads, at, mapped->everywhere ? area->end : at + PAGE);
		size = words[1] & ~(uint64_t)SS_GLIBC_FLAGS;
		bool is_one = (words[1] & SS_GLIBC_FLAGS) == SS_GLIBC_IS_MAPPED &&
			      words[0] == 0 && size > 0 && size % PAGE == 0 &&
			      size <= area->end - at;
		if (!is_one && !mapped->everywhere)
			return;
		if (!is_one)
			size = PAGE;
		mapped->found += is_one;
		if (!is_one || !mapped->count)
			continue;
		heap->mapped_count++;
		heap->mapped_bytes += size;
		count_size(census, size);
		count_class(census, words[2], size);
	}
}

/* Returns how many there are. */
static uint64_t read_all_mapped(struct census *census, bool everywhere, bool count)
{
	const struct ss_capture *capture = census->capture;
	struct mapped mapped = { .everywhere = everywhere,
				 .count = count,
				 .left = everywhere ? (uint64_t)MIXED_MAX : UINT64_MAX };

	for (size_t i = 0; i < capture->areas.count; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		if (!may_be_mapped(area) || area->end - area->start > mapped.left)
			continue;
		mapped.left -= area->end - area->start;
		read_mapped(census, area, &mapped);
	}
	return mapped.found;
}

/* Pages of others are searched only if malloc counts more than are found without that. */
static void count_mapped(struct census *census)
{
	uint64_t found = read_all_mapped(census, false, false);
	bool more = census->malloc.counted && found < census->malloc.maps &&
		    read_all_mapped(census, true, false) <= census->malloc.maps;

	(void)read_all_mapped(census, more, true);
}

/* Result ------------------------------------------------------------------ */

static bool add_sizes(struct census *census)
{
	struct ss_heap_impl *heap = census->heap;

	for (size_t i = 0; i < SIZES; i++) {
		if (census->counts[i] == 0)
			continue;
		struct ss_heap_size *size = ss_vector_push(&heap->sizes);
		if (!size)
			return false;
		size_limits(i, &size->min, &size->max);
		size->count = census->counts[i];
		size->bytes = census->bytes[i];
	}
	return true;
}

static bool take_census(struct census *census)
{
	struct ss_heap_impl *heap = census->heap;
	size_t arenas = census->malloc.arenas.count;

	find_data(census);
	if (!ss_vector_reserve(&heap->arenas, arenas))
		return false;
	heap->arenas.count = arenas; /* does not move any more */
	for (size_t i = 0; i < arenas; i++)
		read_arena(census, i);
	for (size_t i = 0; i < arenas; i++)
		count_fastbins(census, i);
	count_caches(census);
	count_mapped(census);
	if (census->failed || !add_sizes(census))
		return false;
	if (heap->classes.count)
		qsort(heap->classes.items, heap->classes.count,
		      sizeof(*heap->classes.items), compare_classes);
	return find_origins(census);
}

static void publish(const struct census *census)
{
	struct ss_heap_impl *heap = census->heap;
	struct ss_heap *pub = &heap->pub;

	pub->process = &census->capture->process;
	pub->arenas = heap->arenas.items;
	pub->arena_count = heap->arenas.count;
	pub->sizes = heap->sizes.items;
	pub->size_count = heap->sizes.count;
	pub->classes = heap->classes.items;
	pub->class_count = heap->classes.count;
	pub->allocator = census->capture->modules.items[census->malloc.module]->path;
	pub->counted = census->malloc.counted;
	pub->counted_maps = census->malloc.maps;
	pub->counted_map_bytes = census->malloc.map_bytes;
	pub->used_count = pub->mapped_count;
	pub->used_bytes = pub->mapped_bytes;
	for (size_t i = 0; i < pub->arena_count; i++) {
		pub->used_count += pub->arenas[i].used_count;
		pub->used_bytes += pub->arenas[i].used_bytes;
	}
}

/* The path of a module that defines malloc(3) in place of glibc's, or NULL. */
static const char *find_other(const struct ss_capture *capture)
{
	static const char *const names[] = { "libjemalloc", "libtcmalloc", "libmimalloc",
					     "libhoard",    "libsnmalloc", "ld-musl-" };

	for (size_t i = 0; i < capture->modules.count; i++) {
		const char *path = capture->modules.items[i]->path;
		for (size_t k = 0; k < SS_ARRAY_SIZE(names); k++) {
			if (strncmp(ss_path_base(path), names[k], strlen(names[k])) == 0)
				return path;
		}
	}
	return NULL;
}

static struct ss_error *refuse(const char *other)
{
	if (other)
		return ss_error_new(
			SS_ERROR_UNSUPPORTED,
			"the heap belongs to %s; only that of glibc can be read", other);
	return ss_error_new(
		SS_ERROR_UNSUPPORTED,
		"no heap of glibc's malloc was found: the program has another "
		"allocator, or has not allocated anything");
}

static struct ss_error *read_heap(struct census *census)
{
	const struct ss_arch *arch = census->capture->arch;
	const char *other = find_other(census->capture);
	bool found = false;

	if (arch->word != SS_GLIBC_WORD)
		return ss_error_new(SS_ERROR_UNSUPPORTED,
				    "the heap of a program of %s cannot be read",
				    arch->name);
	if (!ss_glibc_malloc_open(census->capture, census->memory, &census->malloc,
				  &found))
		return ss_error_no_memory();
	if (!found)
		return refuse(other);
	if (!take_census(census))
		return ss_error_no_memory();
	publish(census);
	census->heap->pub.other = other;
	return NULL;
}

/* The memory of the process, read anew each time. */
struct live_memory {
	struct ss_memory memory; /* first: see data/memory.h */
	ss_memory_read_function *read;
	void *data;
};

static size_t read_live(const struct ss_memory *memory, uint64_t address, void *bytes,
			size_t size)
{
	const struct live_memory *live = (const struct live_memory *)memory;

	return live->read(live->data, address, bytes, size);
}

static struct ss_heap_impl *new_heap(const struct ss_capture *capture)
{
	struct ss_heap_impl *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->capture = capture;
	heap->strings = ss_intern_new();
	if (heap->strings)
		return heap;
	free(heap);
	return NULL;
}

struct ss_error *ss_heap_read(const struct ss_capture *capture,
			      struct ss_session *session, ss_memory_read_function *read,
			      ss_memory_read_ranges_function *read_ranges, void *data,
			      struct ss_heap **ret)
{
	const struct live_memory live = { { read_live }, read, data };
	struct ss_heap_impl *heap = new_heap(capture);
	_cleanup_(ss_heap_cleanup) struct ss_heap *result = heap ? &heap->pub : NULL;
	__attribute__((cleanup(census_deinit))) struct census census = {
		.heap = heap,
		.capture = capture,
		.read_ranges = read_ranges,
		.read_data = data,
		.window.memory = &live.memory,
	};
	struct ss_late_memory memory;

	if (!heap)
		return ss_error_no_memory();
	ss_late_memory_init(&memory, capture, session, read, data);
	census.memory = &memory.memory;
	struct ss_error *error = read_heap(&census);
	ss_late_memory_deinit(&memory);
	if (!error)
		*ret = take_ptr(result);
	return error;
}

void ss_heap_free(struct ss_heap *heap)
{
	struct ss_heap_impl *impl = (struct ss_heap_impl *)heap;

	if (!impl)
		return;
	ss_vector_free(&impl->arenas);
	ss_vector_free(&impl->sizes);
	ss_vector_free(&impl->classes);
	ss_vector_free(&impl->origins);
	ss_intern_free(impl->strings);
	free(impl);
}
