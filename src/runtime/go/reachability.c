/*
 * Which goroutines nobody can wake: those that wait for channels or semaphores to which nothing
 * leads that may still be executed. The question is that of the garbage collector, and so is the answer:
 * marking begins at what may be executed, and the stack of a goroutine that waits counts only
 * once something for which it waits has been marked. It marks more than the collector does: each
 * word is taken for a pointer.
 *
 * It is certain only if all memory is of one moment. So nothing is found if a thread has run since the
 * capture, if something was not read, or if anything does not look as expected.
 */
#include "runtime/go/goroutines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/search.h"

/*
 * Where the runtime keeps what describes its heap, on 64-bit processors: see mheap.go and
 * runtime2.go in Go's src/runtime.
 *
 * To add a version: compare the structs with those of the version before, and run test_for_ever of
 * tests/e2e/test_goroutines.py with it.
 */
struct heap_layout {
	unsigned first; /* Go 1.first to 1.last */
	unsigned last;
	uint32_t spans; /* of heapArena: pointers to struct mspan, one for each page */
	/* Of mspan: */
	uint8_t class_at;
	uint8_t count_at; /* of its objects */
	uint8_t count_size;
	uint8_t specials;
	/* Of special: of its offset in the span */
	uint8_t offset_size;
	/* Of g: struct sudog, one for each channel that it waits for */
	uint16_t waiting;
	/* Of sudog: */
	uint8_t element; /* of a semaphore: its address */
	uint8_t next;	 /* of the same goroutine */
	uint8_t channel;
};

/* clang-format off */
static const struct heap_layout layouts[] = {
	/*        spans  class nelems specials offset waiting elem next c */
	{ 19, 19, 2 << 20, 98,  56, 8, 128,    2,     328,    24,  64, 80 },
	{ 21, 21, 1064960, 106, 56, 8, 136,    2,     312,    24,  64, 80 },
	{ 22, 22, 0,       98,  50, 2, 128,    2,     312,    24,  64, 80 },
	{ 23, 23, 0,       98,  50, 2, 128,    2,     320,    24,  64, 80 },
	{ 24, 24, 0,       98,  50, 2, 128,    8,     320,    24,  64, 80 },
	{ 25, 25, 0,       98,  50, 2, 128,    8,     312,    24,  64, 80 },
	{ 26, 27, 0,       98,  50, 2, 128,    8,     320,    32,  72, 96 },
};
/* clang-format on */

/* The same in these versions. */
enum {
	SPAN_START = 24,
	SPAN_PAGES = 32,
	SPAN_STATE = 1, /* from its class on */
	SPAN_ELEMENT = 6,
	SPAN_LIMIT = 14,
	SPAN_SIZE = 144,
	STATE_HEAP = 1,
	STATE_STACK = 2,
	NO_POINTERS = 1, /* of its class */
	SUDOG_G = 0,
	SUDOG_NEXT = 8, /* of others that wait for the same */
	SUDOG_SIZE = 112,
	CONDITION_LIST = 16, /* of sync.Cond: its notifyList */
	LIST_LOCK = 8,
	LIST_HEAD = 16, /* its first sudog */
	LIST_TAIL = 24,
	LIST_SIZE = 32,
	SPECIAL_OFFSET = 8,
	SPECIAL_SIZE = 64, /* at most; finalizers and cleanups refer to functions */
};

enum {
	WORD = 8,
	PAGE = 4096,
	GO_PAGE = 8192,
	ARENA_SHIFT = 26,
	ARENA_PAGES = (1 << ARENA_SHIFT) / GO_PAGE,
	RED_ZONE = 128,
	CHUNK = 64 << 10, /* read at once */
	PAGES_AT_ONCE = SS_MEMORY_RANGES_BYTES / PAGE,
	MAP_SIZE = (1 << (48 - ARENA_SHIFT)) * WORD,
	STACK_MIN = 2048,    /* of goroutines: a power of 2 */
	STACK_SEARCH = 1024, /* bytes of a stack that may refer to a semaphore's waiter */
	CASES_MAX = 4096,    /* of a select */
	LISTED_MAX = 1000,   /* waiters of a condition */
	WAITS_MAX = 1 << 20,
	ROUNDS_MAX = 1000, /* goroutines that each wait for the one before */
	/* What is read one by one: */
	SPECIALS_MAX = 4096,
	MAP_READS_MAX = 4096, /* each for an arena that there may be */
	ARENAS_MAX = 64,      /* 4 GiB */
	OBJECTS_MAX = 8192,   /* of a span; 1024 in Go 1.19 */
	THREAD_STACK_MAX = 1 << 20,
};

/* What is read at most, and in how many steps it is searched: it takes about 0.1 s. Pages that are not
   in memory are tried twice, so half of what the reader of a process allows. */
#define BYTES_MAX ((uint64_t)128 << 20)
/* Of a core file, which also has pages that were not in memory. */
#define CORE_BYTES_MAX ((uint64_t)1 << 30)

#define ADDRESS_END (UINT64_C(1) << 47)

/* Arenas are counted from the middle of the address space. */
#define ARENA_BASE UINT64_C(0xffff800000000000)

struct span {
	uint64_t start;
	uint64_t size;
	uint64_t element;
	uint32_t objects;
	bool stack; /* of goroutines: no objects */
	bool no_pointers;
	uint64_t specials;
	uint8_t *bytes;
	uint8_t *marked; /* one bit for each object */
	uint8_t *hidden; /* reached only by way of a goroutine that continues */
};

struct arena {
	uint64_t start;
	uint32_t spans[ARENA_PAGES]; /* index + 1 */
};

struct object {
	uint32_t span;
	uint32_t index;
};

enum kind {
	KIND_ROOT,	/* it may continue, whatever refers to it */
	KIND_CHANNELS,	/* it waits for each of its sudogs' channels */
	KIND_SEMAPHORE, /* for a semaphore */
	KIND_CONDITION, /* for a notifyList, which a sync.Cond has */
	KIND_NEVER,	/* for nothing */
};

struct waiter {
	enum kind kind;
	bool reached;
	size_t first; /* in waits */
	size_t count;
	uint64_t stack; /* what is used of its stack */
	size_t stack_size;
	uint8_t *bytes;
};

struct wait {
	uint64_t sudog;
	uint64_t object;
};

/* Pieces that are read together. */
struct batch {
	struct ss_memory_range ranges[SS_MEMORY_RANGES_MAX];
	size_t count;
	size_t bytes;
	SS_VECTOR(struct ss_memory_range)
	again; /* parts of those that were not read whole */
};

struct reach {
	const struct ss_go_process *process;
	const struct heap_layout *layout;
	struct ss_go_goroutines *goroutines;
	struct batch *batch;
	uint64_t bytes;
	uint64_t bytes_max;
	uint64_t planned; /* bytes to be read */
	uint64_t steps;
	uint64_t known; /* a page that was read */
	uint64_t map;	/* of arenas: one pointer for each */
	uint64_t low;	/* of all arenas */
	uint64_t high;
	bool failed; /* nothing is certain */
	SS_VECTOR(struct arena) arenas;
	SS_VECTOR(struct span) spans;
	SS_VECTOR(uint64_t) headers; /* addresses of struct mspan, ascending */
	SS_VECTOR(struct object) pending;
	SS_VECTOR(struct wait) waits;
	struct waiter *waiters; /* one for each goroutine */
};

typedef void visit_function(struct reach *reach, uint64_t address, const uint8_t *bytes,
			    size_t size);
typedef void range_function(struct reach *reach, uint64_t start, uint64_t end);

/* Of what a hostile process may make long. */
static void count_steps(struct reach *reach, uint64_t count)
{
	reach->steps += count;
	if (reach->steps > reach->bytes_max)
		reach->failed = true;
}

/* Reading ------------------------------------------------------------------ */

static void read_batch(struct reach *reach, struct ss_memory_range *ranges, size_t count)
{
	const struct ss_go_process *process = reach->process;

	if (!process->whole) {
		process->read_ranges(process->read_data, ranges, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		ranges[i].done = process->whole->read(process->whole, ranges[i].address,
						      ranges[i].bytes, ranges[i].size);
}

/* Adds what follows the first page that is not in memory, page by page. A core file must have
   all. */
static void read_again(struct reach *reach, const struct ss_memory_range *range)
{
	uint64_t at = (range->address + range->done) / PAGE * PAGE + PAGE;
	const uint64_t end = range->address + range->size;

	reach->failed |= reach->process->whole != NULL;
	for (; range->size > PAGE && at < end; at += PAGE) {
		struct ss_memory_range *slot = ss_vector_push(&reach->batch->again);
		if (!slot) {
			reach->failed = true;
			return;
		}
		*slot = (struct ss_memory_range){
			.address = at,
			.bytes = (uint8_t *)range->bytes + (at - range->address),
			.size = (size_t)SS_MIN(end - at, (uint64_t)PAGE),
		};
	}
}

/* Reads some pieces, of which visit, unless it is NULL, sees what could be read. */
static void read_pieces(struct reach *reach, struct ss_memory_range *ranges, size_t count,
			visit_function *visit)
{
	if (count)
		read_batch(reach, ranges, count);
	for (size_t i = 0; i < count; i++) {
		struct ss_memory_range *range = &ranges[i];
		range->done = SS_MIN(range->done, range->size);
		reach->bytes += range->done;
		if (range->done)
			reach->known = range->address;
		if (visit)
			visit(reach, range->address, range->bytes, range->done);
	}
}

static void flush(struct reach *reach, visit_function *visit)
{
	struct batch *batch = reach->batch;

	read_pieces(reach, batch->ranges, batch->count, visit);
	for (size_t i = 0; i < batch->count; i++) {
		if (batch->ranges[i].done < batch->ranges[i].size)
			read_again(reach, &batch->ranges[i]);
	}
	batch->count = batch->bytes = 0;
	for (size_t i = 0; i < batch->again.count; i += PAGES_AT_ONCE) {
		const size_t count =
			SS_MIN(batch->again.count - i, (size_t)PAGES_AT_ONCE);
		read_pieces(reach, &batch->again.items[i], count, visit);
	}
	batch->again.count = 0;
	if (reach->bytes > reach->bytes_max)
		reach->failed = true;
}

/* Reads a piece with the next flush(). Its bytes stay 0 where no page is in memory, as they are. */
static void add_read(struct reach *reach, uint64_t address, void *bytes, uint64_t size)
{
	struct batch *batch = reach->batch;

	for (uint64_t at = 0; at < size && !reach->failed; at += CHUNK) {
		const size_t n = (size_t)SS_MIN(size - at, (uint64_t)CHUNK);
		if (batch->count == SS_MEMORY_RANGES_MAX ||
		    batch->bytes + n > SS_MEMORY_RANGES_BYTES)
			flush(reach, NULL);
		batch->ranges[batch->count++] = (struct ss_memory_range){
			.address = address + at, .bytes = (uint8_t *)bytes + at, .size = n
		};
		batch->bytes += n;
	}
}

static void read_now(struct reach *reach, uint64_t address, void *bytes, size_t size)
{
	memset(bytes, 0, size);
	add_read(reach, address, bytes, size);
	flush(reach, NULL);
}

static uint64_t read_word(struct reach *reach, uint64_t address)
{
	uint64_t word;

	read_now(reach, address, &word, sizeof(word));
	return word;
}

/* Whether what was not read was not in memory: no limit has been reached. */
static bool can_read(struct reach *reach)
{
	_cleanup_free_ uint8_t *bytes = malloc(CHUNK);
	struct ss_memory_range range = { .address = reach->known,
					 .bytes = bytes,
					 .size = CHUNK };

	if (!bytes)
		return false;
	read_batch(reach, &range, 1);
	return range.done > 0;
}

/* The heap ----------------------------------------------------------------- */

static struct arena *find_arena(const struct reach *reach, uint64_t address)
{
	const uint64_t start = address >> ARENA_SHIFT << ARENA_SHIFT;

	return ss_search(reach->arenas.items, reach->arenas.count, start, start);
}

/* NULL: there is none at that address. */
static struct span *find_span(const struct reach *reach, uint64_t address)
{
	const struct arena *arena = find_arena(reach, address);
	const uint32_t index = arena ? arena->spans[(address - arena->start) / GO_PAGE] :
				       0;

	return index ? &reach->spans.items[index - 1] : NULL;
}

/* The object to which an address points. */
static bool find_object(const struct reach *reach, uint64_t address, struct object *ret)
{
	const struct span *span = find_span(reach, address);

	if (!span || span->stack)
		return false;
	const uint64_t index = (address - span->start) / span->element;
	if (index >= span->objects)
		return false;
	*ret = (struct object){ (uint32_t)(span - reach->spans.items), (uint32_t)index };
	return true;
}

static bool get_bit(const uint8_t *bits, uint32_t index)
{
	return bits[index / 8] >> (index % 8) & 1;
}

static void set_bit(uint8_t *bits, uint32_t index)
{
	bits[index / 8] |= (uint8_t)(1u << (index % 8));
}

/* The address of the second level of the map of arenas; 0: not found. */
static uint64_t find_map(struct reach *reach, uint64_t g)
{
	const struct ss_go_process *process = reach->process;

	for (size_t i = 0; i < process->program->heap_count; i++) {
		const uint64_t map =
			read_word(reach, process->program->heap[i] + process->bias);
		const uint64_t arena =
			map ? read_word(reach,
					map + ((g - ARENA_BASE) >> ARENA_SHIFT) * WORD) :
			      0;
		const uint64_t page = (g & ((UINT64_C(1) << ARENA_SHIFT) - 1)) / GO_PAGE;
		const uint64_t span =
			arena ? read_word(reach,
					  arena + reach->layout->spans + page * WORD) :
				0;
		const uint64_t start = span ? read_word(reach, span + SPAN_START) : 0;
		const uint64_t pages = span ? read_word(reach, span + SPAN_PAGES) : 0;
		if (start && g >= start && (g - start) / GO_PAGE < pages)
			return map;
	}
	return 0;
}

/* Whether the objects end where the runtime has noted it; a large one may end earlier. Up to Go
   1.25 the noted end leaves out that bits for pointers may follow the objects. */
static bool has_limit(const struct span *span, uint64_t limit)
{
	const uint64_t size = limit - span->start;

	return span->objects == 1 ?
		       size > 0 && size <= span->size :
		       size == span->objects * span->element ||
			       size == span->size / span->element * span->element;
}

/* Notes a span. False: it is not as expected. */
static bool add_span(struct reach *reach, struct arena *arena, size_t page,
		     const uint8_t *bytes)
{
	const struct heap_layout *layout = reach->layout;
	const uint64_t start = ss_load_u64(bytes, SPAN_START);
	const uint64_t pages = ss_load_u64(bytes, SPAN_PAGES);
	const uint64_t address = arena->start + page * GO_PAGE;
	const uint8_t *class = bytes + layout->class_at;
	const uint8_t state = class[SPAN_STATE];
	uint64_t objects = 0;

	/* What was freed may still be in the map, and be used for other pages. */
	if (state == 0 || address < start || (address - start) / GO_PAGE >= pages)
		return true;
	if ((state != STATE_HEAP && state != STATE_STACK) || start != address ||
	    pages > UINT32_MAX / GO_PAGE)
		return false;
	struct span span = { .start = start,
			     .size = pages * GO_PAGE,
			     .element = ss_load_u64(class, SPAN_ELEMENT),
			     .stack = state == STATE_STACK,
			     .no_pointers = class[0] & NO_POINTERS,
			     .specials = ss_load_u64(bytes, layout->specials) };
	if (span.stack) {
		span.specials = 0;
		if (span.element == 0 || span.element > span.size)
			span.element = span.size;
	} else {
		memcpy(&objects, bytes + layout->count_at, layout->count_size);
		span.objects = (uint32_t)objects;
		if (span.element < WORD || objects == 0 || objects > OBJECTS_MAX ||
		    objects > span.size / span.element ||
		    !has_limit(&span, ss_load_u64(class, SPAN_LIMIT)))
			return false;
	}
	struct span *slot = ss_vector_push(&reach->spans);
	if (!slot)
		return false;
	*slot = span;
	for (uint64_t i = 0; i < pages && page + i < ARENA_PAGES; i++)
		arena->spans[page + i] = (uint32_t)reach->spans.count;
	return true;
}

/* A span that begins in the arena before. */
static void continue_span(struct reach *reach, struct arena *arena)
{
	for (size_t i = 0; i < reach->spans.count; i++) {
		const struct span *span = &reach->spans.items[i];
		for (uint64_t at = arena->start;
		     span->start < at && at < span->start + span->size &&
		     (at - arena->start) / GO_PAGE < ARENA_PAGES;
		     at += GO_PAGE)
			arena->spans[(at - arena->start) / GO_PAGE] = (uint32_t)i + 1;
	}
}

/* Reads the spans of an arena whose struct heapArena is at header. */
static void read_arena(struct reach *reach, uint64_t start, uint64_t header)
{
	_cleanup_free_ uint64_t *pointers = calloc(ARENA_PAGES, WORD);
	_cleanup_free_ uint8_t *bytes = calloc(ARENA_PAGES, SPAN_SIZE);
	struct arena *arena =
		reach->arenas.count < ARENAS_MAX ? ss_vector_push(&reach->arenas) : NULL;

	if (!pointers || !bytes || !arena) {
		reach->failed = true;
		return;
	}
	arena->start = start;
	reach->low = reach->arenas.count == 1 ? start : SS_MIN(reach->low, start);
	reach->high = SS_MAX(reach->high, start + ((uint64_t)1 << ARENA_SHIFT));
	continue_span(reach, arena);
	add_read(reach, header + reach->layout->spans, pointers, ARENA_PAGES * WORD);
	flush(reach, NULL);
	for (size_t i = 0; i < ARENA_PAGES; i++) {
		if (pointers[i] && (i == 0 || pointers[i] != pointers[i - 1]))
			add_read(reach, pointers[i], bytes + i * SPAN_SIZE, SPAN_SIZE);
	}
	flush(reach, NULL);
	size_t first = 0; /* page with the same pointer */
	for (size_t i = 0; i < ARENA_PAGES && !reach->failed; i++) {
		if (pointers[i] != pointers[first])
			first = i;
		if (!pointers[i] || arena->spans[i])
			continue;
		uint64_t *slot = first == i ? ss_vector_push(&reach->headers) : NULL;
		if (slot)
			*slot = pointers[i];
		if ((first == i && !slot) ||
		    !add_span(reach, arena, i, bytes + first * SPAN_SIZE))
			reach->failed = true;
	}
}

/* Arenas are where memory is mapped. */
static void read_arenas(struct reach *reach)
{
	const struct ss_capture *capture = reach->process->capture;
	uint64_t next = 0;
	size_t reads = 0;

	for (size_t i = 0; i < capture->areas.count; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		uint64_t start = SS_MAX(area->start >> ARENA_SHIFT << ARENA_SHIFT, next);
		const uint64_t size = (uint64_t)1 << ARENA_SHIFT;
		if (!(area->prot & PROT_WRITE) || area->module >= 0 || area->shared ||
		    area->end > ADDRESS_END)
			continue;
		for (; start < area->end && !reach->failed; start += size) {
			if (reads++ == MAP_READS_MAX) {
				reach->failed = true;
				return;
			}
			const uint64_t header = read_word(
				reach,
				reach->map +
					((start - ARENA_BASE) >> ARENA_SHIFT) * WORD);
			if (header)
				read_arena(reach, start, header);
		}
		next = SS_MAX(next, start);
	}
}

/* Reads all objects that may have pointers. */
static void read_objects(struct reach *reach)
{
	for (size_t i = 0; i < reach->spans.count && !reach->failed; i++) {
		struct span *span = &reach->spans.items[i];
		const size_t bits = span->objects / 8 + 1;
		if (span->stack)
			continue;
		span->marked = calloc(2, bits);
		if (span->marked)
			span->hidden = span->marked + bits;
		if (!span->no_pointers)
			span->bytes = calloc(1, span->size);
		if (!span->marked || (!span->no_pointers && !span->bytes))
			reach->failed = true;
		else if (!span->no_pointers)
			add_read(reach, span->start, span->bytes, span->size);
	}
	flush(reach, NULL);
	if (reach->headers.count > 1)
		qsort(reach->headers.items, reach->headers.count, WORD, ss_compare_u64);
}

/* Marking ------------------------------------------------------------------ */

static void push_object(struct reach *reach, struct object object)
{
	struct object *slot = ss_vector_push(&reach->pending);

	if (slot)
		*slot = object;
	else
		reach->failed = true;
}

static void mark(struct reach *reach, uint64_t word)
{
	struct object object;

	if (word < reach->low || word >= reach->high ||
	    !find_object(reach, word, &object))
		return;
	const struct span *span = &reach->spans.items[object.span];
	if (get_bit(span->marked, object.index))
		return;
	set_bit(span->marked, object.index);
	if (span->bytes && !get_bit(span->hidden, object.index))
		push_object(reach, object);
}

static void mark_words(struct reach *reach, const uint8_t *bytes, size_t size)
{
	count_steps(reach, size / WORD);
	for (size_t at = 0; at + WORD <= size; at += WORD)
		mark(reach, ss_load_u64(bytes, at));
}

/* Whether two words are the bounds of a stack, as a goroutine's struct begins with them. The end is
   no use of the object that begins there. */
static bool is_stack(const struct reach *reach, uint64_t low, uint64_t high)
{
	const struct span *span = find_span(reach, low);
	const uint64_t size = high - low;

	return span && span->stack && high == span->start + span->size &&
	       size >= STACK_MIN && (size & (size - 1)) == 0 &&
	       (low - span->start) % size == 0;
}

static void mark_object(struct reach *reach, const uint8_t *bytes, size_t size)
{
	const bool bounds = size >= 2 * WORD && is_stack(reach, ss_load_u64(bytes, 0),
							 ss_load_u64(bytes, WORD));
	const size_t skip = bounds ? 2 * WORD : 0;

	mark_words(reach, bytes + skip, size - skip);
}

static void mark_pending(struct reach *reach)
{
	while (reach->pending.count && !reach->failed) {
		const struct object object = reach->pending.items[--reach->pending.count];
		const struct span *span = &reach->spans.items[object.span];
		mark_object(reach, span->bytes + object.index * span->element,
			    (size_t)span->element);
	}
}

/* From now on an object is reached by way of its goroutine only. False: it is none. */
static bool hide(struct reach *reach, uint64_t address)
{
	struct object object;

	if (!find_object(reach, address, &object) ||
	    !reach->spans.items[object.span].bytes)
		return false;
	set_bit(reach->spans.items[object.span].hidden, object.index);
	return true;
}

static void show(struct reach *reach, uint64_t address)
{
	struct object object;

	if (!find_object(reach, address, &object))
		return;
	const struct span *span = &reach->spans.items[object.span];
	set_bit(span->marked, object.index);
	if (span->bytes)
		push_object(reach, object);
}

/* What is not in the heap may be known to anybody. */
static bool is_marked(const struct reach *reach, uint64_t address)
{
	struct object object;

	return !find_object(reach, address, &object) ||
	       get_bit(reach->spans.items[object.span].marked, object.index);
}

/* Goroutines ---------------------------------------------------------------- */

static enum kind find_kind(const struct ss_go_goroutine *goroutine)
{
	static const struct {
		const char *reason;
		enum kind kind;
	} kinds[] = {
		{ "chan receive", KIND_CHANNELS },
		{ "chan send", KIND_CHANNELS },
		{ "select", KIND_CHANNELS },
		{ "semacquire", KIND_SEMAPHORE },
		{ "sync.Mutex.Lock", KIND_SEMAPHORE },
		{ "sync.RWMutex.RLock", KIND_SEMAPHORE },
		{ "sync.RWMutex.Lock", KIND_SEMAPHORE },
		{ "sync.WaitGroup.Wait", KIND_SEMAPHORE },
		{ "sync.Cond.Wait", KIND_CONDITION },
		{ "select (no cases)", KIND_NEVER },
	};

	if (goroutine->status != SS_STATUS_WAITING || !goroutine->wait_reason)
		return KIND_ROOT;
	if (goroutine->endless == SS_ENDLESS_NIL_CHANNEL)
		return KIND_NEVER;
	for (size_t i = 0; i < SS_ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].reason, goroutine->wait_reason) == 0)
			return kinds[i].kind;
	}
	return KIND_ROOT;
}

/* The bytes of an object that begins at an address; NULL: there is none of that size. */
static const uint8_t *object_bytes(const struct reach *reach, uint64_t address,
				   size_t size)
{
	struct object object;

	if (!find_object(reach, address, &object))
		return NULL;
	const struct span *span = &reach->spans.items[object.span];
	return span->bytes && span->element >= size &&
			       address == span->start + object.index * span->element ?
		       span->bytes + object.index * span->element :
		       NULL;
}

static bool add_wait(struct reach *reach, struct waiter *waiter, uint64_t sudog,
		     uint64_t object)
{
	struct wait *slot =
		reach->waits.count < WAITS_MAX ? ss_vector_push(&reach->waits) : NULL;

	if (!slot) {
		reach->failed = true;
		return false;
	}
	*slot = (struct wait){ .sudog = sudog, .object = object };
	waiter->count++;
	return true;
}

/* The channels for which a goroutine waits. False: they are not as expected. */
static bool find_channels(struct reach *reach, uint64_t g, struct waiter *waiter)
{
	const struct heap_layout *layout = reach->layout;
	const uint8_t *bytes = object_bytes(reach, g, layout->waiting + WORD);
	uint64_t sudog = bytes ? ss_load_u64(bytes, layout->waiting) : 0;

	while (sudog && waiter->count < CASES_MAX) {
		bytes = object_bytes(reach, sudog, (size_t)layout->channel + WORD);
		if (!bytes || ss_load_u64(bytes, SUDOG_G) != g ||
		    ss_load_u64(bytes, layout->channel) == 0 ||
		    !add_wait(reach, waiter, sudog, ss_load_u64(bytes, layout->channel)))
			return false;
		sudog = ss_load_u64(bytes, layout->next);
	}
	return waiter->count > 0 && !sudog;
}

/* The semaphore: no field of the goroutine has its sudog, but its stack. */
static bool find_semaphore(struct reach *reach, uint64_t g, struct waiter *waiter)
{
	const struct heap_layout *layout = reach->layout;
	const size_t size = SS_MIN(waiter->stack_size, (size_t)STACK_SEARCH);
	uint64_t found = 0;

	for (size_t at = 0; at + WORD <= size; at += WORD) {
		const uint64_t sudog = ss_load_u64(waiter->bytes, at);
		const uint8_t *bytes =
			object_bytes(reach, sudog, (size_t)layout->channel + WORD);
		const struct span *span = bytes ? find_span(reach, sudog) : NULL;
		if (!span || span->element > SUDOG_SIZE || sudog == found ||
		    ss_load_u64(bytes, SUDOG_G) != g ||
		    ss_load_u64(bytes, layout->element) == 0 ||
		    ss_load_u64(bytes, layout->channel) != 0)
			continue;
		if (found)
			return false;
		found = sudog;
		if (!add_wait(reach, waiter, sudog, ss_load_u64(bytes, layout->element)))
			return false;
	}
	return found != 0;
}

/* The sudog of a goroutine in the list of waiters at an address; 0: it is none. */
static uint64_t find_listed(struct reach *reach, uint64_t list, uint64_t g)
{
	struct object object;

	if (list % WORD || !find_object(reach, list, &object))
		return 0;
	const struct span *span = &reach->spans.items[object.span];
	const uint64_t at = list - span->start;
	if (!span->bytes || at + LIST_SIZE > (object.index + 1) * span->element)
		return 0;
	uint64_t sudog = ss_load_u64(span->bytes, (size_t)at + LIST_HEAD);
	uint64_t last = 0;
	uint64_t found = 0;
	for (size_t i = 0; sudog && i < LISTED_MAX && !reach->failed; i++) {
		count_steps(reach, 1);
		const uint8_t *bytes =
			object_bytes(reach, sudog, (size_t)reach->layout->channel + WORD);
		if (!bytes)
			return 0;
		if (ss_load_u64(bytes, SUDOG_G) == g)
			found = sudog;
		last = sudog;
		sudog = ss_load_u64(bytes, SUDOG_NEXT);
	}
	return last == ss_load_u64(span->bytes, (size_t)at + LIST_TAIL) ? found : 0;
}

/* The list of waiters, which only the stack refers to: by its own address, that of its lock, or that
   of its sync.Cond. */
static bool find_condition(struct reach *reach, uint64_t g, struct waiter *waiter)
{
	static const int64_t offsets[] = { 0, -LIST_LOCK, CONDITION_LIST };
	const size_t size = SS_MIN(waiter->stack_size, (size_t)STACK_SEARCH);
	struct wait found = {};

	for (size_t i = 0; i < size / WORD * SS_ARRAY_SIZE(offsets); i++) {
		const size_t at = i / SS_ARRAY_SIZE(offsets) * WORD;
		const uint64_t list = ss_load_u64(waiter->bytes, at) +
				      (uint64_t)offsets[i % SS_ARRAY_SIZE(offsets)];
		const uint64_t sudog =
			list != found.object ? find_listed(reach, list, g) : 0;
		if (sudog && found.object)
			return false;
		if (sudog)
			found = (struct wait){ .sudog = sudog, .object = list };
	}
	return found.object && add_wait(reach, waiter, found.sudog, found.object);
}

static void classify(struct reach *reach, const struct ss_go_goroutine *goroutine,
		     struct waiter *waiter)
{
	bool known = waiter->kind == KIND_NEVER;

	waiter->first = reach->waits.count;
	if (waiter->kind == KIND_CHANNELS)
		known = find_channels(reach, goroutine->address, waiter);
	else if (waiter->kind == KIND_SEMAPHORE)
		known = find_semaphore(reach, goroutine->address, waiter);
	else if (waiter->kind == KIND_CONDITION)
		known = find_condition(reach, goroutine->address, waiter);
	if (!known || !hide(reach, goroutine->address)) {
		waiter->kind = KIND_ROOT;
		return;
	}
	for (size_t i = 0; i < waiter->count; i++)
		(void)hide(reach, reach->waits.items[waiter->first + i].sudog);
}

/* Whether the thread on which a goroutine is was captured. */
static bool is_captured(const struct reach *reach,
			const struct ss_go_goroutine *goroutine)
{
	const struct ss_capture *capture = reach->process->capture;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		if ((thread->inner_tid ? thread->inner_tid : thread->tid) ==
		    goroutine->thread)
			return true;
	}
	return false;
}

static bool is_on_thread(const struct ss_go_goroutine *goroutine)
{
	return goroutine->status == SS_STATUS_RUNNING ||
	       goroutine->status == SS_STATUS_SYSCALL;
}

static bool is_known(const struct reach *reach, const struct ss_go_goroutine *goroutine)
{
	return !goroutine->changed && goroutine->status != SS_STATUS_COPYSTACK &&
	       (!is_on_thread(goroutine) || is_captured(reach, goroutine));
}

/* The stack of one that is on a thread begins where that is. */
static uint64_t find_top(const struct reach *reach,
			 const struct ss_go_goroutine *goroutine)
{
	const struct ss_capture *capture = reach->process->capture;
	uint64_t top = goroutine->stack_high;

	if (!is_on_thread(goroutine))
		return goroutine->sp >= goroutine->stack_low &&
				       goroutine->sp < goroutine->stack_high ?
			       goroutine->sp :
			       goroutine->stack_low;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const uint64_t sp =
			ss_regs_sp(capture->arch, &capture->threads.items[i].regs);
		if (sp >= goroutine->stack_low + RED_ZONE && sp < top)
			top = sp - RED_ZONE;
	}
	return top < goroutine->stack_high ? top : goroutine->stack_low;
}

static void read_goroutines(struct reach *reach)
{
	const size_t count = reach->goroutines->items.count;

	for (size_t i = 0; i < count && !reach->failed; i++) {
		struct waiter *waiter = &reach->waiters[i];
		waiter->bytes = calloc(1, waiter->stack_size + 1);
		if (waiter->bytes)
			add_read(reach, waiter->stack, waiter->bytes, waiter->stack_size);
		else
			reach->failed = true;
	}
	flush(reach, NULL);
	for (size_t i = 0; i < count && !reach->failed; i++)
		classify(reach, &reach->goroutines->items.items[i], &reach->waiters[i]);
}

/* A goroutine that may continue: what it knows may be used. */
static void reach_goroutine(struct reach *reach, size_t index)
{
	struct waiter *waiter = &reach->waiters[index];

	waiter->reached = true;
	mark_words(reach, waiter->bytes, waiter->stack_size);
	show(reach, reach->goroutines->items.items[index].address);
	for (size_t i = 0; i < waiter->count; i++)
		show(reach, reach->waits.items[waiter->first + i].sudog);
}

static bool may_continue(const struct reach *reach, const struct waiter *waiter)
{
	for (size_t i = 0; i < waiter->count; i++) {
		if (is_marked(reach, reach->waits.items[waiter->first + i].object))
			return true;
	}
	return waiter->kind == KIND_ROOT;
}

/* Until none is found any more that may continue. */
static void reach_goroutines(struct reach *reach)
{
	size_t rounds = 0;
	bool more = true;

	while (more && !reach->failed) {
		more = false;
		reach->failed |= ++rounds > ROUNDS_MAX;
		mark_pending(reach);
		for (size_t i = 0; i < reach->goroutines->items.count && !reach->failed;
		     i++) {
			count_steps(reach, 1 + reach->waiters[i].count);
			if (reach->waiters[i].reached ||
			    !may_continue(reach, &reach->waiters[i]))
				continue;
			reach_goroutine(reach, i);
			more = true;
		}
	}
}

/* Roots --------------------------------------------------------------------- */

/* The runtime's own list of spans has where they begin: not a use of their first object. */
static void mark_area_words(struct reach *reach, uint64_t address, const uint8_t *bytes,
			    size_t size)
{
	const uint64_t *headers = reach->headers.items;
	const size_t count = reach->headers.count;
	size_t next = ss_lower_bound(count, i, headers[i] + SPAN_SIZE <= address);

	count_steps(reach, size / WORD);
	for (size_t at = 0; at + WORD <= size; at += WORD) {
		while (next < count && headers[next] + SPAN_SIZE <= address + at)
			next++;
		if (next == count || address + at < headers[next])
			mark(reach, ss_load_u64(bytes, at));
	}
}

static void mark_range(struct reach *reach, uint64_t start, uint64_t end)
{
	_cleanup_free_ uint8_t *bytes = malloc(SS_MEMORY_RANGES_BYTES);

	if (!bytes)
		reach->failed = true;
	for (; start < end && !reach->failed; start += SS_MEMORY_RANGES_BYTES) {
		add_read(reach, start, bytes,
			 SS_MIN(end - start, (uint64_t)SS_MEMORY_RANGES_BYTES));
		flush(reach, mark_area_words);
	}
}

/* Of the stack of a thread, with the pages below it that catch overflows, what is used. */
static uint64_t skip_unused(const struct reach *reach, size_t index)
{
	const struct ss_capture *capture = reach->process->capture;
	const struct ss_area *area = &capture->areas.items[index];
	const struct ss_area *below = index ? area - 1 : NULL;
	const bool guarded = below && below->end == area->start &&
			     below->prot == PROT_NONE;
	uint64_t first = area->end;

	if (strcmp(area->name, "[stack]") != 0 && !guarded)
		return area->start;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const uint64_t sp =
			ss_regs_sp(capture->arch, &capture->threads.items[i].regs);
		if (sp >= area->start + RED_ZONE && sp < first)
			first = (sp - RED_ZONE) / WORD * WORD;
	}
	return first < area->end ? first : area->start;
}

/* Whether the heap or the map of arenas is at an address. *ret_end: as far as that is so. */
static bool is_of_runtime(const struct reach *reach, uint64_t address, uint64_t *ret_end)
{
	const uint64_t map_end = reach->map + MAP_SIZE;

	*ret_end = (address >> ARENA_SHIFT << ARENA_SHIFT) + ((uint64_t)1 << ARENA_SHIFT);
	if (find_arena(reach, address))
		return true;
	if (address >= reach->map && address < map_end) {
		*ret_end = SS_MIN(*ret_end, map_end);
		return true;
	}
	if (address < reach->map)
		*ret_end = SS_MIN(*ret_end, reach->map);
	return false;
}

/* All memory that the process can write but the heap: variables, memory of C and of the runtime,
   stacks of threads. */
static void visit_areas(struct reach *reach, range_function *visit)
{
	const struct ss_capture *capture = reach->process->capture;

	for (size_t i = 0; i < capture->areas.count && !reach->failed; i++) {
		const struct ss_area *area = &capture->areas.items[i];
		const bool used = area->prot & PROT_WRITE ||
				  strcmp(area->name, "//anon") == 0;
		if (area->shared || !(area->prot & PROT_READ) || !used ||
		    area->end > ADDRESS_END)
			continue;
		uint64_t start = skip_unused(reach, i);
		count_steps(reach, capture->threads.count);
		while (start < area->end && !reach->failed) {
			uint64_t end;
			const bool skip = is_of_runtime(reach, start, &end);
			end = SS_MIN(end, area->end);
			if (!skip)
				visit(reach, start, end);
			start = end;
		}
	}
}

/* A thread on a stack that the runtime has made for it, which is in the heap. */
static void visit_thread_stack(struct reach *reach, uint64_t sp, range_function *visit)
{
	const struct ss_go_goroutines *all = reach->goroutines;
	const struct span *span = find_span(reach, sp);

	if (!span)
		return;
	count_steps(reach, all->items.count);
	for (size_t i = 0; i < all->items.count; i++) {
		if (sp >= all->items.items[i].stack_low &&
		    sp < all->items.items[i].stack_high)
			return;
	}
	const uint64_t low =
		span->start + (sp - span->start) / span->element * span->element;
	const uint64_t from = SS_MAX(low, sp - RED_ZONE) / WORD * WORD;
	const uint64_t end = SS_MIN(low + span->element, span->start + span->size);
	if (end - from > THREAD_STACK_MAX)
		reach->failed = true;
	else
		visit(reach, from, end);
}

static void visit_thread_stacks(struct reach *reach, range_function *visit)
{
	const struct ss_capture *capture = reach->process->capture;

	for (size_t i = 0; i < capture->threads.count && !reach->failed; i++)
		visit_thread_stack(
			reach, ss_regs_sp(capture->arch, &capture->threads.items[i].regs),
			visit);
}

static void mark_registers(struct reach *reach)
{
	const struct ss_capture *capture = reach->process->capture;

	for (size_t i = 0; i < capture->threads.count && !reach->failed; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		for (size_t k = 0; k < SS_REG_MAX; k++) {
			if (thread->regs.valid >> k & 1)
				mark(reach, thread->regs.value[k]);
		}
		for (size_t k = 0; k < SS_ARRAY_SIZE(thread->syscall.args); k++)
			mark(reach, thread->syscall.args[k]);
	}
}

/* Objects with finalizers and the like: the runtime calls functions with them. */
static void mark_specials(struct reach *reach)
{
	size_t left = SPECIALS_MAX;

	for (size_t i = 0; i < reach->spans.count && !reach->failed; i++) {
		const uint64_t start = reach->spans.items[i].start;
		uint64_t special = reach->spans.items[i].specials;
		for (; special && !reach->failed; left--) {
			uint8_t bytes[SPECIAL_SIZE];
			uint64_t offset = 0;
			read_now(reach, special, bytes, sizeof(bytes));
			memcpy(&offset, bytes + SPECIAL_OFFSET,
			       reach->layout->offset_size);
			mark(reach, start + offset);
			mark_words(reach, bytes, sizeof(bytes));
			special = ss_load_u64(bytes, 0);
			reach->failed |= left == 0;
		}
	}
}

/* What there is to read ------------------------------------------------------ */

static void plan_range(struct reach *reach, uint64_t start, uint64_t end)
{
	if (end - start > reach->bytes_max - reach->planned)
		reach->failed = true;
	else
		reach->planned += end - start;
}

static void plan_goroutine(struct reach *reach, const struct ss_go_goroutine *goroutine,
			   struct waiter *waiter)
{
	const uint64_t low = goroutine->stack_low;
	const uint64_t high = goroutine->stack_high;

	count_steps(reach, 2 * reach->process->capture->threads.count);
	waiter->kind = find_kind(goroutine);
	waiter->stack = find_top(reach, goroutine) / WORD * WORD;
	if (low % WORD || high % WORD || waiter->stack < low || waiter->stack >= high ||
	    !is_known(reach, goroutine)) {
		reach->failed = true;
		return;
	}
	waiter->stack_size = (size_t)(high - waiter->stack);
	plan_range(reach, waiter->stack, high);
}

/* Fails before much is read if there is too much. */
static void plan(struct reach *reach)
{
	const struct ss_go_goroutines *all = reach->goroutines;

	reach->failed |= reach->bytes > reach->bytes_max;
	reach->planned = SS_MIN(reach->bytes, reach->bytes_max);
	for (size_t i = 0; i < reach->spans.count && !reach->failed; i++) {
		const struct span *span = &reach->spans.items[i];
		if (!span->stack && !span->no_pointers)
			plan_range(reach, span->start, span->start + span->size);
	}
	for (size_t i = 0; i < all->items.count && !reach->failed; i++)
		plan_goroutine(reach, &all->items.items[i], &reach->waiters[i]);
	visit_areas(reach, plan_range);
	visit_thread_stacks(reach, plan_range);
}

/* Everything ---------------------------------------------------------------- */

/* Whether no thread has run since the capture. */
static bool is_still(const struct ss_go_process *process)
{
	const struct ss_capture *capture = process->capture;

	/* Any other thread may refer to something, or have run. */
	if (capture->process.threads_left_out || capture->process.threads_unseen)
		return false;
	if (process->whole)
		return !capture->whole_problem;
	if (capture->process.mode != SS_MODE_AUTO || !capture->process.consistent ||
	    !process->check)
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		if (!thread->regs.valid || thread->stopped_ns ||
		    !process->check(process->read_data, thread->tid))
			return false;
	}
	return true;
}

static void deinit(struct reach *reach)
{
	for (size_t i = 0; i < reach->spans.count; i++) {
		free(reach->spans.items[i].bytes);
		free(reach->spans.items[i].marked);
	}
	for (size_t i = 0; reach->waiters && i < reach->goroutines->items.count; i++)
		free(reach->waiters[i].bytes);
	free(reach->waiters);
	if (reach->batch)
		ss_vector_free(&reach->batch->again);
	free(reach->batch);
	ss_vector_free(&reach->arenas);
	ss_vector_free(&reach->spans);
	ss_vector_free(&reach->headers);
	ss_vector_free(&reach->pending);
	ss_vector_free(&reach->waits);
}

static const struct heap_layout *find_layout(const struct ss_go_program *program)
{
	for (size_t i = 0; i < SS_ARRAY_SIZE(layouts); i++) {
		if (program->minor >= layouts[i].first &&
		    program->minor <= layouts[i].last)
			return &layouts[i];
	}
	return NULL;
}

static void search(struct reach *reach)
{
	read_arenas(reach);
	plan(reach);
	read_objects(reach);
	read_goroutines(reach);
	mark_registers(reach);
	visit_thread_stacks(reach, mark_range);
	visit_areas(reach, mark_range);
	mark_specials(reach);
	reach_goroutines(reach);
}

void ss_go_find_unwakeable(const struct ss_go_process *process,
			   struct ss_go_goroutines *goroutines)
{
	const size_t count = goroutines->items.count;
	/* What is in swap would be read back into memory. */
	const bool readable = process->whole ||
			      (process->read_ranges && process->capture->not_swapped);
	struct reach reach = { .process = process,
			       .layout = find_layout(process->program),
			       .goroutines = goroutines,
			       .bytes_max = process->whole ? CORE_BYTES_MAX : BYTES_MAX };

	if (!reach.layout || !readable || count == 0 || goroutines->unread ||
	    !is_still(process))
		return;
	reach.batch = calloc(1, sizeof(*reach.batch));
	reach.waiters = calloc(count, sizeof(*reach.waiters));
	if (reach.batch && reach.waiters)
		reach.map = find_map(&reach, goroutines->items.items[0].address);
	if (reach.map)
		search(&reach);
	/* The memory is of one moment if this is still so. */
	if (reach.map && !reach.failed && can_read(&reach) && is_still(process)) {
		for (size_t i = 0; i < count; i++) {
			struct ss_go_goroutine *found = &goroutines->items.items[i];
			if (!reach.waiters[i].reached && found->endless == SS_ENDLESS_NO)
				found->endless = SS_ENDLESS_OBJECT;
		}
	}
	deinit(&reach);
}
