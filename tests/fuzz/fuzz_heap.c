/*
 * The data of glibc's malloc: the first 32 bytes are where its data and the heap begin and how
 * long they are; then come their bytes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "data/heap.h"

enum { DATA, HEAP, PARTS };

struct part {
	uint64_t address;
	uint64_t size;
};

struct input {
	struct part parts[PARTS];
	const uint8_t *bytes[PARTS];
};

static size_t read_input(void *data, uint64_t address, void *bytes, size_t size)
{
	const struct input *input = data;

	for (size_t i = 0; i < PARTS; i++) {
		uint64_t at = address - input->parts[i].address;
		if (at >= input->parts[i].size)
			continue;
		size = SS_MIN(size, (size_t)(input->parts[i].size - at));
		memcpy(bytes, input->bytes[i] + at, size);
		return size;
	}
	return 0;
}

static void read_ranges(void *data, struct ss_memory_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ranges[i].done = read_input(data, ranges[i].address, ranges[i].bytes,
					    ranges[i].size);
}

static void add_area(struct ss_capture *capture, const struct part *part, int32_t module,
		     const char *name)
{
	struct ss_area *area = ss_vector_push(&capture->areas);

	FUZZ_REQUIRE(area);
	*area = (struct ss_area){ .start = part->address,
				  .end = part->address + part->size,
				  .prot = PROT_READ | PROT_WRITE,
				  .module = module,
				  .name = name };
}

static void check(const struct ss_heap *heap)
{
	uint64_t count = heap->mapped_count;

	for (size_t i = 0; i < heap->arena_count; i++)
		count += heap->arenas[i].used_count;
	FUZZ_REQUIRE(count == heap->used_count);
	for (size_t i = 0; i < heap->size_count; i++)
		count -= heap->sizes[i].count;
	FUZZ_REQUIRE(count == 0);
	for (size_t i = 1; i < heap->class_count; i++)
		FUZZ_REQUIRE(heap->classes[i - 1].bytes >= heap->classes[i].bytes);
}

static void read_heap(struct ss_capture *capture, struct input *input)
{
	struct ss_session *session = NULL;
	struct ss_heap *heap = NULL;
	struct ss_error *error = ss_session_new(NULL, &session);

	FUZZ_REQUIRE(!error);
	error = ss_heap_read(capture, session, read_input, read_ranges, input, &heap);
	FUZZ_REQUIRE(error || heap);
	if (heap) {
		check(heap);
		FUZZ_REQUIRE(!ss_heap_symbolize(heap, session));
	}
	ss_error_free(error);
	ss_heap_free(heap);
	ss_session_free(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input;

	if (size < sizeof(input.parts))
		return 0;
	memcpy(input.parts, data, sizeof(input.parts));
	data += sizeof(input.parts);
	size -= sizeof(input.parts);
	for (size_t i = 0; i < PARTS; i++) {
		struct part *part = &input.parts[i];
		part->size = SS_MIN(part->size, (uint64_t)size);
		if (part->address > UINT64_MAX / 2 || part->size == 0)
			return 0;
		input.bytes[i] = data;
		data += part->size;
		size -= part->size;
	}
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = ss_capture_new();
	FUZZ_REQUIRE(capture);
	struct ss_module_impl **module = ss_vector_push(&capture->modules);
	FUZZ_REQUIRE(module);
	*module = ss_module_new("/lib/libc.so.6", input.parts[DATA].address,
				input.parts[DATA].address + input.parts[DATA].size);
	FUZZ_REQUIRE(*module);
	bool swapped = input.parts[DATA].address > input.parts[HEAP].address;
	for (size_t i = 0; i < PARTS; i++) {
		bool heap = (i == HEAP) != swapped;
		add_area(capture, &input.parts[heap ? HEAP : DATA], heap ? -1 : 0,
			 heap ? "[heap]" : "/lib/libc.so.6");
	}
	read_heap(capture, &input);
	return 0;
}
