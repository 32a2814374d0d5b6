/*
 * Memory that runtimes read after a capture: what is kept, and what is read again for a proof.
 */
#include "unit.h"

#include <string.h>

#include "runtime/late_memory.h"

enum { PAGE = 4096, BASE = 0x10000, PAGES = 3 };

/* A process whose memory changes with each read: a word is how many pages were read. */
struct process {
	uint64_t reads;
	bool ended;
};

static size_t read_process(void *data, uint64_t address, void *bytes, size_t size)
{
	struct process *process = data;
	uint64_t *words = bytes;

	process->reads++;
	if (process->ended || address < BASE || address + size > BASE + PAGES * PAGE)
		return 0;
	for (size_t i = 0; i < size / sizeof(*words); i++)
		words[i] = process->reads;
	return size;
}

static uint64_t word(const struct ss_late_memory *memory, uint64_t address)
{
	uint64_t value = 0;

	return ss_memory_read_u64(&memory->memory, address, &value) ? value : 0;
}

TEST(test_after)
{
	struct process process = {};
	const struct ss_capture capture = {};
	struct ss_late_memory memory;
	struct ss_late_memory after;

	ss_late_memory_init(&memory, &capture, NULL, read_process, &process);
	ss_late_memory_of_after(&after, &memory);
	assert_int_equal(word(&memory, BASE), 1);
	assert_int_equal(word(&memory, BASE + 8), 1);
	/* It is not what was read before, and is read once. */
	assert_int_equal(word(&after, BASE), 2);
	assert_int_equal(word(&after, BASE + 16), 2);
	/* Nothing new was read. */
	assert_int_equal(word(&memory, BASE + 16), 1);
	assert_int_equal(word(&after, BASE + 24), 2);
	/* A page that was read now has to be followed by another proof. */
	assert_int_equal(word(&memory, BASE + PAGE), 3);
	assert_int_equal(word(&after, BASE), 4);
	assert_int_equal(word(&after, BASE + PAGE), 5);
	assert_int_equal(word(&after, BASE), 4);
	assert_int_equal(process.reads, 5);
	/* What is not there any more proves nothing. */
	process.ended = true;
	assert_int_equal(word(&memory, BASE + 2 * PAGE), 0);
	assert_int_equal(word(&memory, BASE), 1);
	assert_int_equal(word(&after, BASE), 0);
	ss_late_memory_deinit(&after);
	ss_late_memory_deinit(&memory);
}

/* A range that is in two pages. */
TEST(test_range)
{
	struct process process = {};
	const struct ss_capture capture = {};
	struct ss_late_memory memory;
	struct ss_late_memory after;
	uint64_t words[4];

	ss_late_memory_init(&memory, &capture, NULL, read_process, &process);
	ss_late_memory_of_after(&after, &memory);
	assert_true(
		ss_memory_read(&after.memory, BASE + PAGE - 16, words, sizeof(words)));
	assert_int_equal(words[1], 1);
	assert_int_equal(words[2], 2);
	assert_false(ss_memory_read(&after.memory, BASE + PAGES * PAGE - 16, words,
				    sizeof(words)));
	ss_late_memory_deinit(&after);
	ss_late_memory_deinit(&memory);
}

/* What the capture has comes first, also in a page that was read late. */
TEST(test_copied)
{
	struct process process = {};
	uint64_t stack[] = { 77, 78 };
	struct ss_capture_thread threads[2] = {};
	struct ss_capture capture = {};
	struct ss_late_memory memory;

	threads[1].stacks[0] = (struct ss_stack_copy){ .address = BASE + 64,
						       .bytes = (uint8_t *)stack,
						       .size = sizeof(stack) };
	capture.threads.items = threads;
	capture.threads.count = 2;
	ss_late_memory_init(&memory, &capture, NULL, read_process, &process);
	assert_int_equal(word(&memory, BASE), 1);
	assert_int_equal(word(&memory, BASE + 64), 77);
	assert_int_equal(word(&memory, BASE + 72), 78);
	assert_int_equal(word(&memory, BASE + 80), 1);
	assert_int_equal(word(&memory, BASE + PAGE), 2);
	assert_int_equal(word(&memory, BASE + PAGE + 64), 2);
	assert_true(ss_capture_has_copy(&capture, BASE, 65));
	assert_true(ss_capture_has_copy(&capture, BASE + 79, 1));
	assert_false(ss_capture_has_copy(&capture, BASE, 64));
	assert_false(ss_capture_has_copy(&capture, BASE + 80, PAGE));
	ss_late_memory_deinit(&memory);
}

static size_t read_prefix(void *data, uint64_t address, void *bytes, size_t size)
{
	const uint64_t end = BASE + PAGES * PAGE;

	return address < end ? read_process(data, address, bytes,
					    (size_t)SS_MIN(size, end - address)) :
			       0;
}

/* The pages that follow are read at the same time, up to one that is kept. */
TEST(test_ahead)
{
	struct process process = {};
	const struct ss_capture capture = {};
	struct ss_late_memory memory;

	ss_late_memory_init(&memory, &capture, NULL, read_prefix, &process);
	memory.ahead = true;
	assert_int_equal(word(&memory, BASE + 2 * PAGE), 1);
	assert_int_equal(word(&memory, BASE), 2);
	assert_int_equal(memory.unused, 1);
	assert_int_equal(word(&memory, BASE + PAGE), 2);
	assert_int_equal(memory.unused, 0);
	assert_int_equal(word(&memory, BASE + 2 * PAGE + 8), 1);
	assert_int_equal(process.reads, 2);
	assert_int_equal(memory.pages.count, PAGES);
	ss_late_memory_deinit(&memory);
}

enum { LARGE = 1 << 30, BUDGET = 1 << 27 };

/* A large process, of which so many bytes are read and no more. */
static size_t read_large(void *data, uint64_t address, void *bytes, size_t size)
{
	size_t *left = data;

	if (address < BASE || address + size > BASE + LARGE || size > *left)
		return 0;
	*left -= size;
	memset(bytes, 1, size);
	return size;
}

/* One page in sixteen is needed: not all that are between are read. */
TEST(test_scattered)
{
	size_t left = BUDGET;
	const struct ss_capture capture = {};
	struct ss_late_memory memory;
	bool limited = false;

	ss_late_memory_init(&memory, &capture, NULL, read_large, &left);
	memory.ahead = true;
	memory.limited = &limited;
	for (uint64_t i = 0; i < LARGE / PAGE; i += 16)
		assert_int_not_equal(word(&memory, BASE + i * PAGE), 0);
	assert_false(limited);
	assert_in_range(memory.pages.count, LARGE / PAGE / 16, LARGE / PAGE / 10);
	/* This is not there, which is no limit. */
	assert_int_equal(word(&memory, BASE + LARGE), 0);
	assert_false(limited);
	left = 0;
	assert_int_equal(word(&memory, BASE + LARGE - PAGE), 0);
	assert_true(limited);
	ss_late_memory_deinit(&memory);
}

/* Pages that are kept are limited, too. */
TEST(test_pages)
{
	size_t left = LARGE;
	const struct ss_capture capture = {};
	struct ss_late_memory memory;
	struct ss_late_memory after;
	bool limited = false;
	uint64_t i = 0;

	ss_late_memory_init(&memory, &capture, NULL, read_large, &left);
	memory.ahead = true;
	memory.limited = &limited;
	ss_late_memory_of_after(&after, &memory);
	assert_ptr_equal(after.limited, &limited);
	while (i < LARGE / PAGE && word(&memory, BASE + i * PAGE))
		i++;
	assert_int_equal(i, 1 << 15);
	assert_true(limited);
	ss_late_memory_deinit(&after);
	ss_late_memory_deinit(&memory);
}

/* A list of which each page has the address of the next one, and two more pages */
struct walk {
	const struct ss_memory *memory;
	size_t visits;
	uint64_t reached;
};

static size_t read_chain(void *data, uint64_t address, void *bytes, size_t size)
{
	struct process *process = data;
	uint64_t next = address + PAGE;

	process->reads++;
	if (address < BASE || address >= BASE + 8 * PAGE)
		return 0;
	memset(bytes, 0, size);
	memcpy(bytes, &next, sizeof(next));
	return size;
}

static void read_chains(void *data, struct ss_memory_range *ranges, size_t count)
{
	struct process *process = data;
	const uint64_t before = process->reads;

	for (size_t i = 0; i < count; i++)
		ranges[i].done = read_chain(data, ranges[i].address, ranges[i].bytes,
					    ranges[i].size);
	process->reads = before + 1;
}

static void visit_chain(void *data)
{
	struct walk *walk = data;
	uint64_t address = BASE;
	uint64_t word;

	walk->visits++;
	/* Both are known from the beginning. */
	(void)ss_memory_read_u64(walk->memory, BASE + 5 * PAGE, &word);
	(void)ss_memory_read_u64(walk->memory, BASE + 6 * PAGE + 8, &word);
	for (size_t i = 0; i < 3 && ss_memory_read_u64(walk->memory, address, &address);)
		i++;
	walk->reached = address;
}

TEST(test_together)
{
	struct process process = {};
	const struct ss_capture capture = {};
	struct ss_late_memory memory;
	struct ss_late_memory after;
	struct walk walk = {};

	ss_late_memory_init(&memory, &capture, NULL, read_chain, &process);
	ss_late_memory_of_after(&after, &memory);
	walk.memory = &memory.memory;
	/* One by one is not together. */
	ss_late_memory_read_together(&memory.memory, visit_chain, &walk);
	assert_int_equal(walk.visits, 0);
	memory.read_ranges = after.read_ranges = read_chains;
	ss_late_memory_read_together(&memory.memory, visit_chain, &walk);
	assert_int_equal(process.reads, 3);
	assert_int_equal(walk.visits, 4);
	assert_int_equal(walk.reached, BASE + 3 * PAGE);
	/* All is kept, and other pages are read as ever. */
	visit_chain(&walk);
	assert_int_equal(process.reads, 3);
	assert_int_equal(word(&memory, BASE + 4 * PAGE), BASE + 5 * PAGE);
	assert_int_equal(process.reads, 4);
	/* A proof is read again. */
	walk.memory = &after.memory;
	ss_late_memory_read_together(&after.memory, visit_chain, &walk);
	assert_int_equal(process.reads, 7);
	assert_int_equal(word(&after, BASE + 5 * PAGE), BASE + 6 * PAGE);
	assert_int_equal(process.reads, 7);
	ss_late_memory_deinit(&after);
	ss_late_memory_deinit(&memory);
}
