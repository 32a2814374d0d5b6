/* Memory that the kernel copies with the samples of this thread, by a program made from a gather
   plan. */

#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/gather.h"
#include "process/sample_reader.h"

enum { NODES = 40, TRIES = 2000, PERIOD_NS = 1000 * 1000 };

struct leaf {
	uint64_t value;
	uint64_t other;
};

struct node {
	uint64_t value;
	struct node *next;
	struct leaf *leaf; /* with a tag in the lowest bits */
};

struct root {
	uint64_t magic;
	struct node *first;
};

static struct leaf leaves[NODES];
static struct node nodes[NODES];
static struct root root = { .magic = 0x1122334455667788, .first = nodes };

static void make_list(unsigned count)
{
	for (unsigned i = 0; i < NODES; i++) {
		leaves[i] = (struct leaf){ .value = 1000 + i, .other = ~(uint64_t)i };
		nodes[i] = (struct node){
			.value = i,
			.next = i + 1 < count ? &nodes[i + 1] : NULL,
			.leaf = (struct leaf *)((uintptr_t)&leaves[i] + 1),
		};
	}
}

static struct ss_gather_plan make_plan(uint32_t max_nodes)
{
	struct ss_gather_plan plan = {
		.size = sizeof(plan),
		.step_count = 3,
		.max_nodes = 1000,
		.max_bytes = 1 << 20,
		.max_reads = 1000,
		.steps = { { .base = SS_GATHER_ROOT,
			     .mask = UINT64_MAX,
			     .size = sizeof(struct root),
			     .max_nodes = 1 },
			   { .base = SS_GATHER_POINTER,
			     .parent = 0,
			     .mask = UINT64_MAX,
			     .field = offsetof(struct root, first),
			     .size = sizeof(struct node),
			     .next = offsetof(struct node, next),
			     .max_nodes = max_nodes },
			   { .base = SS_GATHER_POINTER,
			     .parent = 1,
			     .mask = ~UINT64_C(3),
			     .field = offsetof(struct node, leaf),
			     .size = sizeof(struct leaf),
			     .max_nodes = 1 } },
		.root_count = 2,
		.roots = { { .address = 4096, .tid = 1 },
			   { .address = (uintptr_t)&root, .tid = gettid() } },
	};

	return plan;
}

struct fixture {
	struct ss_cpu_clock clock;
	struct ss_sample_reader reader;
	uint32_t handle;
	uint64_t bytes[SS_GATHER_RECORD_SIZE / sizeof(uint64_t)];
	size_t size;	  /* of the last copies */
	unsigned samples; /* of this thread since the last copies */
};

/* Executes until a sample of this thread has copies, or for so many samples. */
static bool wait_for_copies(struct fixture *fixture, unsigned samples)
{
	struct ss_clock_sample sample;

	const uint64_t begin_ns = ss_now_ns();

	fixture->samples = 0;
	for (int i = 0; i < TRIES; i++) {
		for (uint64_t end = ss_now_ns() + PERIOD_NS; ss_now_ns() < end;)
			;
		while (ss_cpu_clock_next(&fixture->clock, &sample)) {
			if (sample.tid != gettid() || sample.time_ns < begin_ns)
				continue;
			fixture->samples++;
			if (ss_sample_reader_find(&fixture->reader, &sample,
						  fixture->bytes, &fixture->size))
				return true;
			if (fixture->samples == samples)
				return false;
		}
	}
	fail_msg("no sample of this thread");
	return false;
}

/* The bytes of a block; NULL: it was not copied. */
static const void *find_block(const struct fixture *fixture, const void *address,
			      size_t size)
{
	for (size_t at = 0; at < fixture->size / sizeof(uint64_t);) {
		struct ss_gather_block block;
		memcpy(&block, &fixture->bytes[at], sizeof(block));
		at += sizeof(block) / sizeof(uint64_t);
		if (block.address == (uintptr_t)address && block.size == size &&
		    block.readable)
			return &fixture->bytes[at];
		at += (block.size + 7) / 8;
	}
	return NULL;
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	*state = fixture;
	make_list(NODES);
	if (ss_cpu_clock_open(&fixture->clock, PERIOD_NS, 1024) == 0)
		ss_cpu_clock_start(&fixture->clock);
	fixture->reader.clock = &fixture->clock;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	ss_sample_reader_close(&fixture->reader);
	ss_cpu_clock_close(&fixture->clock);
	free(fixture);
	return 0;
}

/* Skips the test where such programs are not allowed. */
static void set(struct fixture *fixture, const struct ss_gather_plan *plan)
{
	ss_sample_reader_set(&fixture->reader, &fixture->handle, getpid(), plan);
	if (plan && !fixture->reader.is_open) {
		print_message("not allowed: %s\n", strerror(fixture->reader.errnum));
		skip();
	}
}

TEST_WITH(test_list, set_up, tear_down)
{
	struct fixture *fixture = *state;
	const struct ss_gather_plan plan = make_plan(100);

	set(fixture, &plan);
	assert_true(wait_for_copies(fixture, 100));
	const struct root *copied = find_block(fixture, &root, sizeof(root));
	assert_non_null(copied);
	assert_memory_equal(copied, &root, sizeof(root));
	for (int i = 0; i < NODES; i++) {
		const struct node *node =
			find_block(fixture, &nodes[i], sizeof(nodes[i]));
		const struct leaf *leaf =
			find_block(fixture, &leaves[i], sizeof(leaves[i]));
		assert_non_null(node);
		assert_memory_equal(node, &nodes[i], sizeof(*node));
		assert_non_null(leaf);
		assert_memory_equal(leaf, &leaves[i], sizeof(*leaf));
	}
}

/* What ends early, at memory that cannot be read, has the rest. */
TEST_WITH(test_unreadable, set_up, tear_down)
{
	struct fixture *fixture = *state;
	const struct ss_gather_plan plan = make_plan(100);

	nodes[3].leaf = (struct leaf *)(uintptr_t)4096;
	nodes[5].next = (struct node *)(uintptr_t)4096;
	set(fixture, &plan);
	assert_true(wait_for_copies(fixture, 100));
	assert_non_null(find_block(fixture, &nodes[5], sizeof(nodes[5])));
	assert_null(find_block(fixture, &nodes[6], sizeof(nodes[6])));
	assert_null(find_block(fixture, &leaves[3], sizeof(leaves[3])));
	assert_non_null(find_block(fixture, &leaves[4], sizeof(leaves[4])));
	assert_null(find_block(fixture, (void *)(uintptr_t)4096, sizeof(nodes[0])));
}

/* A list that is longer than the plan allows, or a cycle, gives no copies: they are not all. */
TEST_WITH(test_cut, set_up, tear_down)
{
	struct fixture *fixture = *state;
	struct ss_gather_plan plan = make_plan(NODES - 1);

	set(fixture, &plan);
	assert_false(wait_for_copies(fixture, 20));
	plan = make_plan(1000);
	set(fixture, &plan);
	assert_true(wait_for_copies(fixture, 100));
	nodes[NODES - 1].next = nodes;
	assert_false(wait_for_copies(fixture, 20));
}

/* A second root of a thread, as another interpreter has. */
TEST_WITH(test_roots, set_up, tear_down)
{
	struct fixture *fixture = *state;
	struct ss_gather_plan plan = make_plan(100);
	static struct root second;

	second.magic = 2; /* now it is in memory */
	set(fixture, &plan);
	plan.roots[2] =
		(struct ss_gather_root){ .address = (uintptr_t)&second, .tid = gettid() };
	plan.root_count = 3;
	assert_true(wait_for_copies(fixture, 100));
	assert_null(find_block(fixture, &second, sizeof(second)));
	set(fixture, &plan);
	assert_true(wait_for_copies(fixture, 100));
	assert_non_null(find_block(fixture, &second, sizeof(second)));
	assert_non_null(find_block(fixture, &root, sizeof(root)));
}

/* Another plan of the same steps, and none. */
TEST_WITH(test_threads, set_up, tear_down)
{
	struct fixture *fixture = *state;
	struct ss_gather_plan plan = make_plan(100);

	set(fixture, &plan);
	const uint32_t handle = fixture->handle;
	plan.root_count = 1;
	set(fixture, &plan);
	assert_int_equal(fixture->handle, handle);
	assert_true(wait_for_copies(fixture, 100));
	assert_int_equal(fixture->size, 0);
	plan.root_count = 2;
	set(fixture, &plan);
	assert_true(wait_for_copies(fixture, 100));
	set(fixture, NULL);
	assert_int_equal(fixture->handle, 0);
	assert_false(wait_for_copies(fixture, 20));
	set(fixture, &plan);
	assert_true(wait_for_copies(fixture, 100));
}

/* Steps that the program does not know. */
TEST_WITH(test_other_steps, set_up, tear_down)
{
	struct fixture *fixture = *state;
	struct ss_gather_plan plan = make_plan(100);

	set(fixture, &plan);
	plan.steps[2].stride = 8;
	ss_sample_reader_set(&fixture->reader, &fixture->handle, getpid(), &plan);
	assert_int_equal(fixture->handle, 0);
	assert_false(wait_for_copies(fixture, 20));
}

/* Processes share programs; a plan that is not known is not tried again, and none is if there were too
   many. */
TEST_WITH(test_programs, set_up, tear_down)
{
	struct fixture *fixture = *state;
	struct ss_gather_plan plan = make_plan(1000);
	uint32_t other = 0;

	set(fixture, &plan);
	plan = make_plan(2000);
	ss_sample_reader_set(&fixture->reader, &other, 1, &plan);
	assert_int_not_equal(other, 0);
	assert_int_equal(fixture->reader.programs.count, 1);
	for (int i = 0; i < 3; i++) {
		plan.steps[2].stride = 8;
		ss_sample_reader_set(&fixture->reader, &other, 1, &plan);
		assert_int_equal(other, 0);
		assert_int_equal(fixture->reader.programs.count, 2);
	}
	for (uint32_t i = 2; i < 2 * SS_SAMPLE_PROGRAMS; i++) {
		plan = make_plan(i);
		ss_sample_reader_set(&fixture->reader, &other, 1, &plan);
		assert_int_equal(other != 0, i < SS_SAMPLE_PROGRAMS);
	}
	assert_true(wait_for_copies(fixture, 100));
	assert_non_null(find_block(fixture, &root, sizeof(root)));
}

static bool make(const struct ss_gather_plan *plan)
{
	const struct ss_gather_maps maps = { .record_count = 4 };
	struct ss_bpf_code code = {};
	bool made = ss_gather_program_make(&code, &maps, plan, 1);

	ss_bpf_code_deinit(&code);
	return made;
}

/* What would take the kernel long to check, or is not known. */
TEST(test_shapes)
{
	struct ss_gather_plan plan = make_plan(100);

	assert_true(make(&plan));
	plan.steps[2].max_nodes = 2;
	assert_false(make(&plan));
	plan = make_plan(100);
	for (; plan.step_count <= SS_GATHER_PROGRAM_STEPS; plan.step_count++) {
		assert_true(make(&plan));
		plan.steps[plan.step_count] = plan.steps[2];
	}
	assert_false(make(&plan));
	plan = make_plan(100);
	plan.steps[0].base = SS_GATHER_THREAD_POINTER;
	assert_false(make(&plan));
	plan = make_plan(100);
	plan.steps[0].base = SS_GATHER_REGISTER;
	plan.steps[0].parent = SS_REG_MAX;
	assert_false(make(&plan));
	plan = make_plan(100);
	plan.steps[1].size = 4097;
	assert_false(make(&plan));
	plan = make_plan(100);
	plan.steps[1].offset = INT64_C(1) << 40;
	assert_false(make(&plan));
}

/* Without the clock. */
TEST_WITH(test_closed, set_up, tear_down)
{
	struct fixture *fixture = *state;
	struct ss_sample_reader reader = {};
	const struct ss_clock_sample sample = { .tid = gettid() };
	const struct ss_gather_plan plan = make_plan(100);
	uint32_t handle = 0;

	ss_sample_reader_set(&reader, &handle, getpid(), &plan);
	assert_int_equal(handle, 0);
	assert_false(
		ss_sample_reader_find(&reader, &sample, fixture->bytes, &fixture->size));
	ss_sample_reader_close(&reader);
}
