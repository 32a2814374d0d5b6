/*
 * Chunks of a made-up heap of glibc: consistent ones, and what a hostile or a running process may have
 * there.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "heap/malloc.h"

enum {
	START = SS_GLIBC_HEAP,
	SIZE = 4096,
	WORDS = SIZE / 8,
	CHUNK = 64,
	CHUNKS = SIZE / CHUNK
};

struct heap {
	struct ss_memory memory; /* first */
	size_t readable;
	uint64_t words[WORDS];
	size_t told;
	uint64_t told_bytes;
	size_t told_free;
};

static size_t read_heap(const struct ss_memory *memory, uint64_t address, void *bytes,
			size_t size)
{
	const struct heap *heap = (const struct heap *)memory;

	return unit_copy(bytes, size, heap->words, heap->readable, address - START);
}

/* The word with the size of a chunk. */
static uint64_t *size_of(struct heap *heap, size_t chunk)
{
	return &heap->words[chunk * CHUNK / 8 + 1];
}

static void tell(void *data, const struct ss_glibc_chunk *chunk)
{
	struct heap *heap = data;

	assert_true(chunk->address >= START);
	assert_true(chunk->size <= START + SIZE - chunk->address);
	heap->told++;
	heap->told_bytes += chunk->size;
	heap->told_free += chunk->free;
}

static int setup(void **state)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return -1;
	heap->memory.read = read_heap;
	heap->readable = SIZE;
	for (size_t i = 0; i < CHUNKS; i++)
		*size_of(heap, i) = CHUNK | SS_GLIBC_PREVIOUS_IN_USE;
	*state = heap;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* All but the last one, which is the mark at the end. */
static struct ss_glibc_walk walk(struct heap *heap)
{
	static struct ss_glibc_window window;
	struct ss_glibc_walk walk = { .window = &window,
				      .start = START,
				      .end = START + SIZE - CHUNK,
				      .tell = tell,
				      .data = heap };

	window = (struct ss_glibc_window){ .memory = &heap->memory };
	heap->told = heap->told_free = 0;
	heap->told_bytes = 0;
	ss_glibc_walk(&walk);
	return walk;
}

TEST_WITH(test_whole, setup, teardown)
{
	struct heap *heap = *state;

	*size_of(heap, 5) &= ~(uint64_t)SS_GLIBC_PREVIOUS_IN_USE;
	heap->words[(size_t)5 * CHUNK / 8] = CHUNK; /* of the free chunk before it */
	struct ss_glibc_walk result = walk(heap);
	assert_int_equal(heap->told, CHUNKS - 1);
	assert_int_equal(heap->told_free, 1);
	assert_int_equal(result.unread, 0);
	assert_null(result.problem);
}

TEST_WITH(test_inconsistent, setup, teardown)
{
	static const uint64_t sizes[] = { 0, 1, CHUNK + 8, SIZE, UINT64_MAX, 1ULL << 63 };
	struct heap *heap = *state;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		*size_of(heap, 20) = sizes[i];
		struct ss_glibc_walk result = walk(heap);
		/* The one before does not agree with it either; the walk goes on behind it. */
		assert_true(heap->told >= CHUNKS - 3 && heap->told < CHUNKS - 1);
		assert_int_equal(result.unread + heap->told_bytes, SIZE - CHUNK);
		assert_non_null(result.problem);
	}
}

TEST_WITH(test_unreadable, setup, teardown)
{
	struct heap *heap = *state;

	heap->readable = SIZE / 2;
	struct ss_glibc_walk result = walk(heap);
	assert_true(heap->told > 0 && heap->told <= CHUNKS / 2);
	assert_int_equal(result.unread + heap->told_bytes, SIZE - CHUNK);
	assert_non_null(result.problem);
}

/* The description of a heap is believed only if it can be one of this arena. */
TEST_WITH(test_heap, setup, teardown)
{
	enum { ARENA, PREVIOUS, BYTES, ADDRESS = 0x7000 };
	static const struct {
		int word;
		uint64_t value;
		bool valid;
	} cases[] = {
		{ ARENA, ADDRESS, true },
		{ ARENA, ADDRESS + 8, false },
		{ BYTES, 31, false },
		{ BYTES, (uint64_t)SS_GLIBC_HEAP + 1, false },
		{ BYTES, UINT64_MAX, false },
		{ PREVIOUS, SIZE, false },
	};
	const struct ss_glibc_arena arena = { .address = ADDRESS };
	struct heap *heap = *state;
	struct ss_glibc_malloc malloc = { .memory = &heap->memory, .heap_header = 32 };
	struct ss_glibc_heap found;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		heap->words[ARENA] = ADDRESS;
		heap->words[PREVIOUS] = 0;
		heap->words[BYTES] = SIZE;
		heap->words[cases[i].word] = cases[i].value;
		assert_int_equal(ss_glibc_heap_read(&malloc, &arena, START + 100, &found),
				 cases[i].valid);
	}
}
