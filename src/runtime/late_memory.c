#include "runtime/late_memory.h"

#include <string.h>

#include "base/cleanup.h"

enum {
	PAGE = 4096,
	PAGES_MAX = 1 << 15, /* 128 MiB */
	AHEAD = 16,	     /* pages that are read at once, as one message has */
	UNUSED_MAX = PAGES_MAX / 4,
	TOGETHER = SS_MEMORY_RANGES_BYTES / PAGE, /* pages that are read at once, */
	VISITS_MAX = 32, /* so often at most: as objects refer to others */
};

struct query {
	const struct ss_late_memory *cache;
	uint64_t address;
};

static bool is_page(const void *context, uint32_t index)
{
	const struct query *query = context;

	return query->cache->pages.items[index].address == query->address;
}

/* Bytes of the file that is mapped at an address: of a private mapping, a page that is not
   in memory has not been changed. A page at most. */
static size_t read_file(const struct ss_late_memory *memory, uint64_t address,
			void *bytes)
{
	const struct ss_capture *capture = memory->capture;
	const struct ss_area *area = ss_capture_find_area(capture, address);

	if (!area || area->shared || area->module < 0 ||
	    ss_session_skips(memory->session, area->module))
		return 0;
	const struct ss_module_impl *module = capture->modules.items[area->module];
	for (size_t i = 0; i < module->mapping_count; i++) {
		const struct ss_mapping *m = &module->mappings[i];
		if (address < m->start || address >= m->end)
			continue;
		ss_session_note(memory->session, area->module);
		ssize_t n = ss_module_read(module, m->offset + (address - m->start),
					   bytes, SS_MIN((size_t)PAGE, m->end - address));
		ss_session_note(memory->session, -1);
		return n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static struct ss_late_page *find_page(const struct ss_late_memory *cache,
				      uint64_t address)
{
	const struct query query = { cache, address & ~(uint64_t)(PAGE - 1) };
	uint32_t index =
		ss_hash_find(&cache->table, query.address / PAGE, is_page, &query);

	return index != SS_HASH_NONE ? &cache->pages.items[index] : NULL;
}

static void set_limited(const struct ss_late_memory *cache)
{
	if (cache->limited)
		*cache->limited = true;
}

static struct ss_late_page *push_page(struct ss_late_memory *cache, uint64_t address,
				      bool copied)
{
	uint8_t *bytes = cache->pages.count < PAGES_MAX ? malloc(PAGE) : NULL;

	if (!bytes || !ss_hash_reserve(&cache->table)) {
		free(bytes);
		set_limited(cache);
		return NULL;
	}
	struct ss_late_page *page = ss_vector_push(&cache->pages);
	if (!page) {
		free(bytes);
		return NULL;
	}
	page->address = address;
	page->bytes = bytes;
	page->copied = copied;
	ss_hash_insert(&cache->table, address / PAGE, (uint32_t)(cache->pages.count - 1));
	return page;
}

static bool is_used(const struct ss_late_memory *cache, uint64_t address)
{
	const struct ss_late_page *page = find_page(cache, address);

	return page && !page->unused;
}

/* How much to read at once: up to the next page that is kept. After many pages were read in
   vain, of a heap of which few are needed, no more than were used just before. */
static size_t size_to_read(const struct ss_late_memory *cache, uint64_t address)
{
	size_t size = PAGE;

	while (cache->ahead && size < AHEAD * PAGE && !find_page(cache, address + size) &&
	       (cache->unused < UNUSED_MAX || is_used(cache, address - size)))
		size += PAGE;
	return size;
}

/* After a page could not be read: whether one that could be read cannot any more. */
static void check_limit(struct ss_late_memory *cache, uint8_t *bytes, size_t size)
{
	if (cache->limited && !*cache->limited && cache->readable &&
	    cache->read(cache->read_data, cache->readable, bytes, size) == 0)
		*cache->limited = true;
}

static const struct ss_late_page *add_page(struct ss_late_memory *cache, uint64_t address)
{
	const size_t index = cache->pages.count;
	const size_t most = size_to_read(cache, address);
	/* Proofs are never read from the capture. */
	const bool copied = cache->base ||
			    ss_capture_has_copy(cache->capture, address, most);
	struct ss_late_page *page = push_page(cache, address, copied);
	uint8_t bytes[AHEAD * PAGE];

	if (!page)
		return NULL;
	size_t size = cache->read ? cache->read(cache->read_data, address, bytes, most) :
				    0;
	size = SS_MIN(size, most);
	if (size > 0) {
		cache->readable = address;
	} else if (cache->read) {
		check_limit(cache, bytes, most);
		size = read_file(cache, address, bytes);
	}
	page->size = SS_MIN(size, (size_t)PAGE);
	memcpy(page->bytes, bytes, page->size);
	for (size_t at = PAGE; at + PAGE <= size; at += PAGE) {
		page = push_page(cache, address + at, copied);
		if (!page)
			break;
		memcpy(page->bytes, bytes + at, PAGE);
		page->size = PAGE;
		page->unused = true;
		cache->unused++;
	}
	return &cache->pages.items[index];
}

static const struct ss_late_page *use_page(struct ss_late_memory *cache, uint64_t address)
{
	struct ss_late_page *page = find_page(cache, address);

	if (page && page->unused) {
		page->unused = false;
		cache->unused--;
	}
	return page;
}

static size_t copy_from(const struct ss_late_page *page, uint64_t address, void *bytes,
			size_t size)
{
	size_t at = (size_t)(address - page->address);

	if (at >= page->size)
		return 0;
	size = SS_MIN(size, page->size - at);
	memcpy(bytes, page->bytes + at, size);
	return size;
}

/* Others are read the next time. */
static void note_lacking(struct ss_late_memory *cache, uint64_t address)
{
	if (cache->lacking.count == TOGETHER)
		return;
	for (size_t i = cache->lacking.count; i-- > 0;) {
		if (cache->lacking.items[i] == address)
			return;
	}
	uint64_t *slot = ss_vector_push(&cache->lacking);
	if (slot)
		*slot = address;
}

/* Reads all pages that were noted. */
static void read_lacking(struct ss_late_memory *cache)
{
	struct ss_memory_range ranges[TOGETHER];
	const size_t begin = cache->pages.count;
	uint8_t scratch[PAGE];
	bool failed = false;
	size_t count = 0;

	for (size_t i = 0; i < cache->lacking.count; i++) {
		const uint64_t address = cache->lacking.items[i];
		const struct ss_late_page *page =
			push_page(cache, address,
				  cache->base || ss_capture_has_copy(cache->capture,
								     address, PAGE));
		if (!page)
			break;
		ranges[count++] = (struct ss_memory_range){ .address = address,
							    .bytes = page->bytes,
							    .size = PAGE };
	}
	cache->read_ranges(cache->read_data, ranges, count);
	for (size_t i = 0; i < count; i++) {
		struct ss_late_page *page = &cache->pages.items[begin + i];
		page->size = SS_MIN(ranges[i].done, (size_t)PAGE);
		if (page->size > 0)
			cache->readable = page->address;
		failed |= page->size == 0;
	}
	if (failed)
		check_limit(cache, scratch, PAGE);
	for (size_t i = 0; failed && i < count; i++) {
		struct ss_late_page *page = &cache->pages.items[begin + i];
		if (page->size == 0)
			page->size = read_file(cache, page->address, page->bytes);
	}
}

static size_t read_page(struct ss_late_memory *cache, uint64_t address, void *bytes,
			size_t size)
{
	const struct ss_late_page *page = use_page(cache, address);

	if (!page && cache->collects)
		note_lacking(cache, address & ~(uint64_t)(PAGE - 1));
	else if (!page)
		page = add_page(cache, address & ~(uint64_t)(PAGE - 1));
	return page ? copy_from(page, address, bytes, size) : 0;
}

/* Reads a page of which nothing is in the capture: searching that takes long if there are many
   threads. */
static size_t read_kept(const struct ss_late_memory *memory, uint64_t address,
			void *bytes, size_t size)
{
	const struct ss_late_page *page =
		memory == memory->cache ? use_page(memory->cache, address) : NULL;

	return page && !page->copied ? copy_from(page, address, bytes, size) : 0;
}

static size_t read_memory(const struct ss_memory *memory, uint64_t address, void *bytes,
			  size_t size)
{
	const struct ss_late_memory *self = (const struct ss_late_memory *)memory;
	const struct ss_memory *copied = &self->copied.memory;
	size_t done = 0;

	while (done < size) {
		uint8_t *at = (uint8_t *)bytes + done;
		size_t n = read_kept(self, address + done, at, size - done);
		if (n == 0)
			n = copied->read(copied, address + done, at, size - done);
		if (n == 0 && self->allow) {
			n = read_page(self->cache, address + done, at, size - done);
			if (n > 0 && self->used)
				*self->used = true;
		}
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

void ss_late_memory_init(struct ss_late_memory *memory, const struct ss_capture *capture,
			 const struct ss_session *session, ss_memory_read_function *read,
			 void *read_data)
{
	*memory = (struct ss_late_memory){ .memory.read = read_memory,
					   .capture = capture,
					   .session = session,
					   .read = read,
					   .read_data = read_data,
					   .allow = true,
					   .cache = memory };
	ss_capture_memory_init(&memory->copied, capture, NULL);
}

void ss_late_memory_deinit(struct ss_late_memory *memory)
{
	for (size_t i = 0; i < memory->pages.count; i++)
		free(memory->pages.items[i].bytes);
	ss_vector_free(&memory->pages);
	ss_vector_free(&memory->lacking);
	memory->unused = 0;
	ss_hash_deinit(&memory->table);
}

void ss_late_memory_of_thread(struct ss_late_memory *memory, struct ss_late_memory *base,
			      const struct ss_capture_thread *thread, bool allow)
{
	*memory = (struct ss_late_memory){ .memory.read = read_memory,
					   .capture = base->capture,
					   .session = base->session,
					   .read = base->read,
					   .read_data = base->read_data,
					   .allow = allow,
					   .cache = base->cache };
	ss_capture_memory_init(&memory->copied, base->capture, thread);
}

static size_t read_now(const struct ss_memory *memory, uint64_t address, void *bytes,
		       size_t size)
{
	const struct ss_late_memory *self = (const struct ss_late_memory *)memory;
	size_t n = self->read ? self->read(self->read_data, address, bytes, size) : 0;

	return n == size ? n : read_memory(&self->cache->memory, address, bytes, size);
}

void ss_late_memory_of_now(struct ss_late_memory *memory, struct ss_late_memory *base)
{
	*memory = (struct ss_late_memory){ .memory.read = read_now,
					   .read = base->read,
					   .read_data = base->read_data,
					   .cache = base->cache };
}

static size_t read_after(const struct ss_memory *memory, uint64_t address, void *bytes,
			 size_t size)
{
	struct ss_late_memory *self = ((const struct ss_late_memory *)memory)->cache;
	size_t done = 0;

	/* Without a function, all memory is of the moment of the capture. */
	if (!self->read)
		return read_memory(&self->base->memory, address, bytes, size);
	if (self->base_pages != self->base->pages.count)
		ss_late_memory_deinit(self);
	self->base_pages = self->base->pages.count;
	while (done < size) {
		size_t n = read_page(self, address + done, (uint8_t *)bytes + done,
				     size - done);
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

void ss_late_memory_of_after(struct ss_late_memory *memory,
			     const struct ss_late_memory *base)
{
	*memory = (struct ss_late_memory){ .memory.read = read_after,
					   .capture = base->capture,
					   .session = base->session,
					   .read = base->read,
					   .read_data = base->read_data,
					   .cache = memory,
					   .limited = base->limited,
					   .base = base };
}

void ss_late_memory_read_together(const struct ss_memory *memory,
				  void (*visit)(void *data), void *data)
{
	struct ss_late_memory *cache = ((const struct ss_late_memory *)memory)->cache;

	for (size_t i = 0; cache->read_ranges && i < VISITS_MAX; i++) {
		cache->lacking.count = 0;
		cache->collects = true;
		visit(data);
		cache->collects = false;
		if (cache->lacking.count == 0)
			break;
		read_lacking(cache);
	}
}

void ss_late_memory_forget(const struct ss_memory *after)
{
	/* What it keeps is not a part of its value: see read_after(). */
	ss_late_memory_deinit(((const struct ss_late_memory *)after)->cache);
}
