#include "model/capture_memory.h"

#include <string.h>

#include "base/search.h"

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
