/* What was copied with a sample, as a turn of a gather plan: bytes that are made up here. */

#include "unit.h"

#include <string.h>

#include "data/gather.h"
#include "sample/gathers.h"

enum { TID = 77, LIST = 0x1000, NODE = 0x100, ROOT = 0x9000 };

struct node {
	uint64_t next;
	uint64_t value;
};

struct copies {
	uint8_t bytes[4096];
	size_t size;
	struct ss_on_cpu_sample sample;
};

static void add_block(struct copies *copies, uint64_t address, const void *bytes,
		      uint64_t size, bool readable)
{
	const struct ss_gather_block block = { .address = address,
					       .size = size,
					       .readable = readable };

	memcpy(copies->bytes + copies->size, &block, sizeof(block));
	copies->size += sizeof(block);
	memcpy(copies->bytes + copies->size, bytes, size);
	copies->size += (size + 7) / 8 * 8;
	copies->sample.copies = copies->bytes;
	copies->sample.copies_size = copies->size;
	copies->sample.clock.tid = TID;
	copies->sample.copied = true;
}

static void add_node(struct copies *copies, unsigned index, bool last, bool readable)
{
	const struct node node = {
		.next = last ? 0 : LIST + (uint64_t)(index + 1) * NODE,
		.value = index,
	};

	add_block(copies, LIST + (uint64_t)index * NODE, &node, sizeof(node), readable);
}

static void set_plan(struct ss_gathers *gathers, uint32_t base)
{
	struct ss_gather_plan plan = {
		.size = sizeof(plan),
		.step_count = 1,
		.max_nodes = 1000,
		.max_bytes = 1 << 16,
		.max_reads = 100,
		.steps = { { .base = base,
			     .parent = base == SS_GATHER_REGISTER ? ss_arch_host.fp : 0,
			     .mask = UINT64_MAX,
			     .size = sizeof(struct node),
			     .max_nodes = 50 } },
		.root_count = base == SS_GATHER_ROOT,
		.roots = { { .address = ROOT, .tid = TID } },
	};

	assert_null(ss_gathers_set(gathers, &plan));
}

/* The values of the nodes of a turn, and how many there are. */
static size_t take(struct ss_gathers *gathers, const struct copies *copies,
		   uint64_t values[100])
{
	unsigned turn = ss_gathers_take(gathers, &copies->sample);
	size_t count = 0;

	assert_int_not_equal(turn, 0);
	for (size_t i = gathers->first[turn - 1]; i < gathers->first[turn]; i++) {
		const struct ss_gather_node *node = &gathers->gather->nodes[i];
		struct node bytes;
		if (node->size < sizeof(bytes))
			continue;
		memcpy(&bytes, node->bytes, sizeof(bytes));
		values[count++] = bytes.value;
	}
	return count;
}

/* A list, in any order of the blocks; its beginning is what a register has. */
TEST(test_list)
{
	static const unsigned orders[][4] = { { 0, 1, 2, 3 },
					      { 3, 2, 1, 0 },
					      { 2, 0, 3, 1 } };
	struct ss_gathers gathers = {};
	uint64_t values[100];

	set_plan(&gathers, SS_GATHER_REGISTER);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct copies copies = {};
		for (size_t k = 0; k < 4; k++)
			add_node(&copies, orders[i][k], orders[i][k] == 3, true);
		copies.sample.clock.kernel.rbp = LIST;
		assert_int_equal(take(&gathers, &copies, values), 4);
		for (uint64_t k = 0; k < 4; k++)
			assert_int_equal(values[k], k);
	}
	ss_gathers_deinit(&gathers);
}

/* A list ends at what could not be read, and at what was not copied. */
TEST(test_missing)
{
	struct ss_gathers gathers = {};
	struct copies copies = {};
	uint64_t values[100];

	set_plan(&gathers, SS_GATHER_REGISTER);
	copies.sample.clock.kernel.rbp = LIST;
	add_node(&copies, 0, false, true);
	assert_int_equal(take(&gathers, &copies, values), 1);
	add_node(&copies, 1, false, false);
	assert_int_equal(take(&gathers, &copies, values), 1);
	ss_gathers_deinit(&gathers);
}

/* The roots of the thread, and of no other. */
TEST(test_root)
{
	const struct node root = { .value = 5 };
	struct ss_gathers gathers = {};
	struct copies copies = {};
	uint64_t values[100];

	set_plan(&gathers, SS_GATHER_ROOT);
	add_block(&copies, ROOT, &root, sizeof(root), true);
	assert_int_equal(take(&gathers, &copies, values), 1);
	assert_int_equal(values[0], 5);
	copies.sample.clock.tid = TID + 1;
	assert_int_equal(take(&gathers, &copies, values), 0);
	ss_gathers_deinit(&gathers);
}

/* A block that is longer than the copies, and one that is cut off. */
TEST(test_broken)
{
	struct ss_gathers gathers = {};
	uint64_t values[100];

	set_plan(&gathers, SS_GATHER_REGISTER);
	for (size_t cut = 0; cut < sizeof(struct ss_gather_block) + sizeof(struct node);
	     cut++) {
		struct copies copies = {};
		add_node(&copies, 0, true, true);
		copies.sample.copies_size = cut;
		copies.sample.clock.kernel.rbp = LIST;
		assert_int_equal(take(&gathers, &copies, values), 0);
		ss_gathers_begin(&gathers);
	}
	struct copies copies = {};
	add_node(&copies, 0, true, true);
	((struct ss_gather_block *)(void *)copies.bytes)->size = UINT64_MAX - 8;
	copies.sample.clock.kernel.rbp = LIST;
	assert_int_equal(take(&gathers, &copies, values), 0);
	ss_gathers_deinit(&gathers);
}

/* No plan; and more samples than turns. */
TEST(test_turns)
{
	struct ss_gathers gathers = {};
	struct copies copies = {};
	uint64_t values[100];

	add_node(&copies, 0, true, true);
	copies.sample.clock.kernel.rbp = LIST;
	assert_int_equal(ss_gathers_take(&gathers, &copies.sample), 0);
	set_plan(&gathers, SS_GATHER_REGISTER);
	for (int i = 0; i < SS_GATHER_TURNS_TAKEN; i++)
		assert_int_equal(take(&gathers, &copies, values), 1);
	assert_int_equal(ss_gathers_take(&gathers, &copies.sample), 0);
	ss_gathers_begin(&gathers);
	assert_int_equal(take(&gathers, &copies, values), 1);
	ss_gathers_deinit(&gathers);
}
