/*
 * The table of CPython 3.14 for its lists of tasks, and lists that change while they are read.
 */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/python/python.h"

enum { BASE = 0x10000, WORDS = 4096, NODE = 152, HEAD = BASE, TASK = BASE + 0x100 };

static uint64_t words[WORDS];
static uint64_t old[WORDS]; /* as they were read before */

static size_t read_words(const uint64_t *from, uint64_t address, void *ret, size_t size)
{
	if (address < BASE || address - BASE > sizeof(words) - size)
		return 0;
	memcpy(ret, (const uint8_t *)from + (address - BASE), size);
	return size;
}

static size_t read_new(const struct ss_memory *memory, uint64_t address, void *ret,
		       size_t size)
{
	(void)memory;
	return read_words(words, address, ret, size);
}

static size_t read_old(const struct ss_memory *memory, uint64_t address, void *ret,
		       size_t size)
{
	(void)memory;
	return read_words(old, address, ret, size);
}

static const struct ss_memory now = { .read = read_new };
static const struct ss_memory then = { .read = read_old };

static void put(uint64_t address, uint64_t value)
{
	words[(address - BASE) / 8] = value;
}

/* Node 0 is the head. */
static uint64_t node_of(size_t index)
{
	return index ? TASK + 0x100 * (index - 1) + NODE : HEAD;
}

static void put_list(const size_t *order, size_t count)
{
	memset(words, 0, sizeof(words));
	for (size_t i = 0; i < count; i++) {
		put(node_of(order[i]), node_of(order[(i + 1) % count]));
		put(node_of(order[i]) + 8, node_of(order[(i + count - 1) % count]));
	}
}

#define PUT_LIST(...)                                                                    \
	put_list((const size_t[]){ __VA_ARGS__ },                                        \
		 sizeof((const size_t[]){ __VA_ARGS__ }) / sizeof(size_t))

/* The tasks that are found: bit n for number n. */
static unsigned read_list(size_t max, bool *ret_whole)
{
	struct ss_python_objects found = {};
	unsigned ret = 0;

	assert_true(ss_python_task_list_read(&then, &now, HEAD, NODE, max, &found,
					     ret_whole));
	for (size_t i = 0; i < found.list.count; i++)
		ret |= 1U << ((found.list.items[i] - TASK) / 0x100 + 1);
	print_message("%zu found: 0x%x, whole: %d\n", found.list.count, ret, *ret_whole);
	ss_vector_free(&found.list);
	return ret;
}

static void check(unsigned expected, bool expected_whole)
{
	bool whole = !expected_whole;

	assert_int_equal(read_list(100, &whole) & expected, expected);
	assert_int_equal(whole, expected_whole);
}

static void keep(size_t index)
{
	memcpy(old + (node_of(index) - BASE) / 8, words + (node_of(index) - BASE) / 8,
	       16);
}

TEST(test_list)
{
	bool whole = false;

	memset(words, 0, sizeof(words));
	memcpy(old, words, sizeof(words));
	assert_int_equal(read_list(100, &whole), 0);
	assert_true(whole);
	PUT_LIST(0);
	memcpy(old, words, sizeof(words));
	assert_int_equal(read_list(100, &whole), 0);
	assert_true(whole);
	PUT_LIST(0, 1, 2, 3);
	memcpy(old, words, sizeof(words));
	assert_int_equal(read_list(100, &whole), 0xe);
	assert_true(whole);
	/* A limit */
	assert_int_equal(read_list(2, &whole), 0xc);
	assert_false(whole);
	/* A cycle without the head, and a node that is nowhere */
	put(node_of(1) + 8, node_of(2));
	memcpy(old, words, sizeof(words));
	(void)read_list(100, &whole);
	assert_false(whole);
	put(node_of(2) + 8, 8);
	memcpy(old, words, sizeof(words));
	(void)read_list(100, &whole);
	assert_false(whole);
}

/* Some nodes were read earlier. */
TEST(test_changes)
{
	PUT_LIST(0, 1, 2, 3, 4);
	memcpy(old, words, sizeof(words));
	PUT_LIST(0, 1, 3, 4);
	keep(2);
	keep(1);
	check(0x1a, true);
	/* 3 and 4 have, and are at the address of later ones. */
	PUT_LIST(0, 3, 4, 1, 2);
	memcpy(old, words, sizeof(words));
	PUT_LIST(0, 1, 2, 3, 4);
	keep(0);
	check(0x6, true);
	/* Nothing is as it was. */
	PUT_LIST(0, 4, 3, 2, 1);
	memcpy(old, words, sizeof(words));
	PUT_LIST(0, 1, 2, 3, 4);
	keep(0);
	check(0x1e, true);
}

/* A list that changes with each reading: of tasks 1 to 9, 1 and 5 stay. */
static size_t reads;

static size_t read_changing(const struct ss_memory *memory, uint64_t address, void *ret,
			    size_t size)
{
	size_t order[10] = { 0, 1, 5 };
	size_t count = 3;

	(void)memory;
	for (size_t i = 2; i < 5; i++) {
		if ((reads + i) % 7 < 4)
			order[count++] = i;
	}
	reads++;
	put_list(order, count);
	return read_words(words, address, ret, size);
}

TEST(test_changing)
{
	static const struct ss_memory changing = { .read = read_changing };

	for (reads = 0; reads < 200;) {
		struct ss_python_objects found = {};
		bool whole = false;
		bool has[10] = {};
		assert_true(ss_python_task_list_read(&changing, &changing, HEAD, NODE,
						     100, &found, &whole));
		for (size_t i = 0; i < found.list.count; i++)
			has[(found.list.items[i] - TASK) / 0x100 + 1] = true;
		ss_vector_free(&found.list);
		print_message("after %zu readings: whole %d, has %d %d\n", reads, whole,
			      has[1], has[5]);
		assert_true(!whole || (has[1] && has[5]));
	}
}

TEST(test_table)
{
	static const uint64_t table[] = { 168,	136, 96,   108, 109, 128, 152,
					  4096, 640, 4096, 864, 872, 880 };
	struct ss_python_task_table found = {};

	memcpy(words, table, sizeof(table));
	assert_null(ss_python_task_table_read(&now, BASE, &found));
	assert_int_equal(found.task_size, 168);
	assert_int_equal(found.task_node, 152);
	assert_int_equal(found.thread_tasks, 880);
	/* Each member beyond its structure, and not aligned; and structures without end */
	static const size_t members[] = { 1, 5, 6, 8, 12 };
	for (size_t i = 0; i < SS_ARRAY_SIZE(members); i++) {
		words[members[i]] = 4096;
		assert_non_null(ss_python_task_table_read(&now, BASE, &found));
		words[members[i]] = 129;
		assert_non_null(ss_python_task_table_read(&now, BASE, &found));
		words[members[i]] = table[members[i]];
	}
	static const size_t sizes[] = { 0, 7, 9 };
	for (size_t i = 0; i < SS_ARRAY_SIZE(sizes); i++) {
		words[sizes[i]] = UINT64_MAX;
		assert_non_null(ss_python_task_table_read(&now, BASE, &found));
		words[sizes[i]] = 0;
		assert_non_null(ss_python_task_table_read(&now, BASE, &found));
		words[sizes[i]] = table[sizes[i]];
	}
	assert_null(ss_python_task_table_read(&now, BASE, &found));
	assert_string_equal(ss_python_task_table_read(&now, 8, &found),
			    "its table of offsets could not be read");
}
