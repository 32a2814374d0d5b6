#include "data/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/io.h"
#include "base/search.h"
#include "data/pipeline.h"

/* Of processes that can be captured, which are those of x86-64. */
enum { PAGE = 4096, SAVED_MAX = 128 << 20 };

struct ss_capture *ss_capture_new(void)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture =
		calloc(1, sizeof(*capture));

	if (!capture)
		return NULL;
	capture->arch = &ss_arch_host;
	capture->strings = ss_intern_new();
	return capture->strings ? take_ptr(capture) : NULL;
}

bool ss_gathered_changed(const struct ss_gathered *gathered, uint64_t address)
{
	size_t count = gathered->changed.count;
	size_t at = ss_lower_bound(count, i, gathered->changed.items[i] < address);

	return at < count && gathered->changed.items[at] == address;
}

void ss_gathered_deinit(struct ss_gathered *gathered)
{
	ss_vector_free(&gathered->blocks);
	ss_vector_free(&gathered->changed);
	free(gathered->bytes);
	gathered->bytes = NULL;
}

SS_DEFINE_COMPARE(compare_blocks, struct ss_memory_block, address)

/* Overlapping blocks agree, since all were read while the threads stood still. */
void ss_gathered_sort(struct ss_gathered *gathered)
{
	size_t kept = 0;
	uint64_t end = 0; /* of the last block that was kept */

	if (gathered->blocks.count > 1)
		qsort(gathered->blocks.items, gathered->blocks.count,
		      sizeof(*gathered->blocks.items), compare_blocks);
	for (size_t i = 0; i < gathered->blocks.count; i++) {
		struct ss_memory_block block = gathered->blocks.items[i];
		uint64_t overlap = end > block.address ? end - block.address : 0;
		if (overlap >= block.size)
			continue;
		block.address += overlap;
		block.bytes += overlap;
		block.size -= (size_t)overlap;
		end = block.address + block.size;
		gathered->blocks.items[kept++] = block;
	}
	gathered->blocks.count = kept;
}

void ss_capture_clear_turns(struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->turns.count; i++)
		ss_gathered_deinit(&capture->turns.items[i]);
	capture->turns.count = 0;
}

struct ss_stack_block *ss_stack_block_new(size_t size)
{
	struct ss_stack_block *block = malloc(sizeof(*block) + size);

	if (block)
		block->references = 1;
	return block;
}

struct ss_stack_block *ss_stack_block_ref(struct ss_stack_block *block)
{
	block->references++;
	return block;
}

void ss_stack_block_unref(struct ss_stack_block *block)
{
	if (block && --block->references == 0)
		free(block);
}

static void free_one(struct ss_capture *capture)
{
	for (size_t i = 0; i < capture->threads.count; i++) {
		free(capture->threads.items[i].live);
		ss_stack_block_unref(capture->threads.items[i].block);
	}
	free(capture->locks);
	ss_vector_free(&capture->threads);
	ss_vector_free(&capture->areas);
	for (size_t i = 0; i < capture->others.count; i++)
		ss_capture_free(capture->others.items[i]);
	ss_vector_free(&capture->others);
	for (size_t i = 0; i < capture->modules.count; i++)
		ss_module_unref(capture->modules.items[i]);
	ss_vector_free(&capture->modules);
	if (capture->arena)
		(void)munmap(capture->arena, capture->arena_size); /* our own range */
	if (capture->whole)
		capture->free_whole(capture->whole);
	ss_gathered_deinit(&capture->gathered);
	ss_capture_clear_turns(capture);
	ss_vector_free(&capture->turns);
	ss_module_unref(capture->perf_map);
	ss_facts_unref(capture->facts);
	ss_stack_block_unref(capture->saved);
	ss_stack_block_unref(capture->earlier);
	ss_intern_free(capture->strings);
	free(capture);
}

void ss_capture_free(struct ss_capture *capture)
{
	while (capture) {
		struct ss_capture *next = capture->complement;
		free_one(capture);
		capture = next;
	}
}

uint64_t ss_capture_size(const struct ss_capture *capture)
{
	uint64_t size = 0;

	for (; capture; capture = capture->complement) {
		size += capture->arena_size + capture->own_bytes;
		size += capture->saved_shared ? 0 : capture->saved_size;
		for (size_t i = 0; i < capture->gathered.blocks.count; i++)
			size += capture->gathered.blocks.items[i].size;
		for (size_t i = 0; i < capture->others.count; i++)
			size += capture->others.items[i]->arena_size;
	}
	return size;
}

struct ss_error *ss_capture_add_stacks(struct ss_capture *capture, int fd, bool *ret)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return ss_error_new_errno(errno, "cannot read saved stacks");
	if (file.st_size > SAVED_MAX)
		return ss_error_new(SS_ERROR_INVALID,
				    "the saved stacks are larger than %d MiB",
				    SAVED_MAX >> 20);
	struct ss_stack_block *block = ss_stack_block_new((size_t)file.st_size);
	if (!block)
		return ss_error_no_memory();
	const ssize_t size = ss_io_pread(fd, block->bytes, (size_t)file.st_size, 0);
	if (size < 0) {
		ss_stack_block_unref(block);
		return ss_error_new_errno((int)-size, "cannot read saved stacks");
	}
	ss_stack_block_unref(capture->saved);
	ss_stack_block_unref(capture->earlier);
	capture->earlier = NULL;
	capture->saved = block;
	capture->saved_size = (size_t)size;
	capture->saved_shared = false;
	*ret = size > 0;
	return NULL;
}

bool ss_capture_has_stacks(const struct ss_capture *capture)
{
	return capture->saved_size > 0;
}

bool ss_capture_has_new_files(const struct ss_capture *capture)
{
	return capture->has_other_modules || capture->has_opened_files;
}

/* Frames refer to modules by their index. */
static bool has_same_modules(const struct ss_capture *a, const struct ss_capture *b)
{
	if (a->modules.count != b->modules.count)
		return false;
	return ss_all(a->modules.count, i, a->modules.items[i] == b->modules.items[i]);
}

/* A kernel worker may be another one although no thread of the program has run. */
static bool has_same_threads(const struct ss_capture *a, const struct ss_capture *b)
{
	if (a->threads.count != b->threads.count)
		return false;
	return ss_all(a->threads.count, i,
		      a->threads.items[i].tid == b->threads.items[i].tid);
}

void ss_capture_keep_stacks(struct ss_capture *capture, const struct ss_capture *previous)
{
	capture->has_other_modules = !has_same_modules(capture, previous);
	if (!previous->saved || capture->has_other_modules)
		return;
	capture->earlier = ss_stack_block_ref(previous->saved);
	capture->earlier_size = previous->saved_size;
	/* Tasks and locks of runtimes are changed by threads that are left out, too. */
	if (!capture->not_run || !has_same_threads(capture, previous))
		return;
	capture->saved = ss_stack_block_ref(previous->saved);
	capture->saved_size = previous->saved_size;
	capture->saved_shared = true;
}

const char *ss_capture_path(struct ss_capture *capture, const char *path, size_t size)
{
	size_t root = capture->root ? strlen(capture->root) : 0;
	bool below = root > 0 && size > root && path[root] == '/' &&
		     memcmp(path, capture->root, root) == 0;

	return below ? ss_intern_bytes(capture->strings, path + root, size - root) :
		       ss_intern_bytes(capture->strings, path, size);
}

static bool is_absent(const struct ss_stack_copy *copy, size_t at)
{
	size_t page = (copy->address % PAGE + at) / PAGE;

	return copy->absent[page / 8] >> page % 8 & 1;
}

size_t ss_stack_copy_present(const struct ss_stack_copy *copy, size_t at)
{
	size_t end = at;

	if (at >= copy->size || !copy->absent)
		return at < copy->size ? copy->size - at : 0;
	while (end < copy->size && !is_absent(copy, end))
		end += PAGE - (copy->address + end) % PAGE;
	return SS_MIN(end, copy->size) - at;
}

bool ss_capture_thread_lacks(const struct ss_capture_thread *thread, uint64_t address)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		uint64_t at = address - copy->address;
		if (copy->absent && at < copy->size)
			return is_absent(copy, (size_t)at);
	}
	return false;
}

struct ss_capture_thread *ss_capture_find_thread(const struct ss_capture *capture,
						 pid_t tid)
{
	return ss_search(capture->threads.items, capture->threads.count, tid, tid);
}

const struct ss_area *ss_capture_find_area(const struct ss_capture *capture,
					   uint64_t address)
{
	size_t low = ss_lower_bound(capture->areas.count, i,
				    capture->areas.items[i].end <= address);

	if (low == capture->areas.count || capture->areas.items[low].start > address)
		return NULL;
	return &capture->areas.items[low];
}

/* Whether an area continues the one before it: a core file may have parts of a mapping. */
static bool continues(const struct ss_area *area)
{
	const struct ss_area *before = area - 1;

	return before->end == area->start && before->prot == area->prot &&
	       before->module == area->module && before->shared == area->shared &&
	       strcmp(before->name, area->name) == 0;
}

bool ss_capture_find_mapping(const struct ss_capture *capture, uint64_t address,
			     struct ss_mapped_range *ret)
{
	const struct ss_area *first = ss_capture_find_area(capture, address);
	const struct ss_area *last = first;

	if (!first)
		return false;
	while (first > capture->areas.items && continues(first))
		first--;
	while (last + 1 < capture->areas.items + capture->areas.count &&
	       continues(last + 1))
		last++;
	*ret = (struct ss_mapped_range){
		.start = first->start,
		.end = last->end,
		.name = strcmp(first->name, "//anon") == 0 ? "" : first->name,
	};
	return true;
}

const char *ss_area_label(const struct ss_area *area)
{
	bool jit = (area->prot & PROT_EXEC) &&
		   (strcmp(area->name, "//anon") == 0 ||
		    strcmp(area->name, SS_SHARED_MEMORY) == 0);

	return jit ? "[jit]" : area->name;
}

/* Copies the lock word, since facts outlive the capture. Returns false if memory is
   exhausted. */
static bool add_lock(struct ss_facts *facts, const struct ss_capture *capture,
		     const struct ss_lock_copy *from, struct ss_thread_facts *thread)
{
	const struct ss_area *area = ss_capture_find_area(capture, from->address);

	thread->freeze_round = from->freeze_round;
	if (from->size == 0)
		return true;
	uint8_t *bytes = ss_facts_keep(facts, from->size);
	if (!bytes)
		return false;
	memcpy(bytes, from->bytes, from->size);
	thread->lock = (struct ss_memory_fact){ .address = from->address,
						.size = from->size,
						.bytes = bytes };
	thread->lock_shared = !area || area->shared;
	return true;
}

bool ss_capture_add_thread_facts(const struct ss_capture *capture, struct ss_facts *facts)
{
	if (!ss_vector_reserve(&facts->threads, capture->threads.count))
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *from = &capture->threads.items[i];
		struct ss_thread_facts *thread = ss_vector_push(&facts->threads);
		if (!thread)
			return false;
		thread->tid = from->tid;
		thread->state = from->state;
		thread->worker = from->worker;
		thread->call = from->syscall;
		if (!add_lock(facts, capture, &from->lock, thread))
			return false;
	}
	return true;
}

/* The bytes from address to the end of the copy that contains it. */
struct span {
	const uint8_t *bytes;
	size_t size;
};

static bool find_in_copy(uint64_t start, const uint8_t *bytes, size_t size,
			 uint64_t address, struct span *ret)
{
	uint64_t at = address - start;

	if (at >= size)
		return false;
	*ret = (struct span){ .bytes = bytes + at, .size = size - (size_t)at };
	return true;
}

static bool find_in_thread(const struct ss_capture_thread *thread, uint64_t address,
			   struct span *ret)
{
	for (size_t i = 0; i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &thread->stacks[i];
		if (!find_in_copy(copy->address, copy->bytes, copy->size, address, ret))
			continue;
		ret->size = ss_stack_copy_present(copy, copy->size - ret->size);
		if (ret->size > 0)
			return true;
	}
	return find_in_copy(thread->lock.address, thread->lock.bytes, thread->lock.size,
			    address, ret);
}

static bool find_in_blocks(const struct ss_gathered *gathered, uint64_t address,
			   struct span *ret)
{
	/* The number of blocks that start at or before address. */
	size_t count = ss_lower_bound(gathered->blocks.count, i,
				      gathered->blocks.items[i].address <= address);

	if (count == 0)
		return false;
	const struct ss_memory_block *block = &gathered->blocks.items[count - 1];
	return find_in_copy(block->address, block->bytes, block->size, address, ret);
}

static bool find_span(const struct ss_capture_memory *memory, uint64_t address,
		      struct span *ret)
{
	const struct ss_capture *capture = memory->capture;

	if (memory->thread && find_in_thread(memory->thread, address, ret))
		return true;
	if (memory->thread && memory->thread->turn > 0 &&
	    memory->thread->turn <= capture->turns.count &&
	    find_in_blocks(&capture->turns.items[memory->thread->turn - 1], address, ret))
		return true;
	if (!(memory->thread && memory->thread->turn > 0) &&
	    find_in_blocks(&capture->gathered, address, ret))
		return true;
	if (memory->thread)
		return false;
	for (size_t i = 0; i < capture->threads.count; i++) {
		if (find_in_thread(&capture->threads.items[i], address, ret))
			return true;
	}
	return false;
}

/* Whether a limit has cut the copy of a stack of the thread in the area of that address. */
static bool is_cut(const struct ss_capture_memory *self, uint64_t address)
{
	const struct ss_area *area = ss_capture_find_area(self->capture, address);

	for (size_t i = 0; self->thread && i < SS_STACK_COPIES; i++) {
		const struct ss_stack_copy *copy = &self->thread->stacks[i];
		if (copy->truncated &&
		    ss_capture_find_area(self->capture, copy->address) == area)
			return true;
	}
	return false;
}

static size_t read_capture(const struct ss_memory *memory, uint64_t address, void *bytes,
			   size_t size)
{
	const struct ss_capture_memory *self = (const struct ss_capture_memory *)memory;
	struct span span;
	size_t done = 0;

	/* A range may continue in another copy. */
	while (done < size && find_span(self, address + done, &span)) {
		size_t n = SS_MIN(span.size, size - done);
		memcpy((uint8_t *)bytes + done, span.bytes, n);
		done += n;
	}
	/* Of a core file, other stacks to which a stack leads were not copied. */
	const struct ss_memory *whole = self->capture->whole;
	if (done < size && whole && !is_cut(self, address + done))
		done += whole->read(whole, address + done, (uint8_t *)bytes + done,
				    size - done);
	return done;
}

void ss_capture_memory_init(struct ss_capture_memory *memory,
			    const struct ss_capture *capture,
			    const struct ss_capture_thread *thread)
{
	*memory = (struct ss_capture_memory){
		.memory.read = read_capture,
		.capture = capture,
		.thread = thread,
	};
}

size_t ss_capture_read(const struct ss_capture *capture, uint64_t address, void *bytes,
		       size_t size)
{
	struct ss_capture_memory memory;

	ss_capture_memory_init(&memory, capture, NULL);
	return read_capture(&memory.memory, address, bytes, size);
}

static bool overlaps(uint64_t start, size_t size, uint64_t other, size_t other_size)
{
	return other >= start ? other - start < size : start - other < other_size;
}

bool ss_capture_has_copy(const struct ss_capture *capture, uint64_t start, size_t size)
{
	const struct ss_gathered *gathered = &capture->gathered;

	for (size_t i = 0; i < capture->threads.count; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		for (size_t k = 0; k < SS_STACK_COPIES; k++) {
			const struct ss_stack_copy *copy = &thread->stacks[k];
			if (overlaps(copy->address, copy->size, start, size))
				return true;
		}
		if (overlaps(thread->lock.address, thread->lock.size, start, size))
			return true;
	}
	for (size_t i = 0; i < gathered->blocks.count; i++) {
		const struct ss_memory_block *block = &gathered->blocks.items[i];
		if (overlaps(block->address, block->size, start, size))
			return true;
	}
	return false;
}
