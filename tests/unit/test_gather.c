/*
 * Gather plans: which plans are accepted, what they copy from memory that the test makes
 * up, and from a process that runs while it is captured.
 */
#include "capture_child.h"

#include <sys/syscall.h>

#include "base/cleanup.h"
#include "data/capture.h"
#include "data/gather.h"
#include "data/pipeline.h"

enum { BASE = 0x10000, SIZE = 4096 };

/* SIZE bytes of memory at address BASE, and two threads. */
struct fake {
	struct ss_gather_source source;
	uint8_t bytes[SIZE];
};

static void read_fake(const struct ss_gather_source *source, struct ss_piece *pieces,
		      size_t count)
{
	const struct fake *fake = (const struct fake *)source;

	assert_in_range(count, 1, SS_GATHER_BATCH);
	for (size_t i = 0; i < count; i++) {
		uint64_t at = pieces[i].address - BASE;
		pieces[i].done = at < SIZE ? SS_MIN(pieces[i].size, SIZE - at) : 0;
		memcpy(pieces[i].bytes, fake->bytes + (at < SIZE ? at : 0),
		       pieces[i].done);
	}
}

/* Register 7 is known of both threads, the thread pointer of the second. */
static bool find_base(const struct ss_gather_source *source, size_t thread,
		      const struct ss_gather_step *step, uint64_t *ret)
{
	(void)source;
	*ret = BASE + 256 * (thread + 1);
	return step->base == SS_GATHER_REGISTER ? step->parent == 7 : thread == 1;
}

static struct fake *make_fake(void)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->source = (struct ss_gather_source){ .read = read_fake,
						  .find_base = find_base,
						  .thread_count = 2 };
	return fake;
}

static void put(struct fake *fake, size_t at, uint64_t value)
{
	memcpy(fake->bytes + at, &value, sizeof(value));
}

static struct ss_gather_plan make_plan(void)
{
	struct ss_gather_plan plan = { .size = sizeof(plan),
				       .step_count = 1,
				       .max_nodes = 100,
				       .max_bytes = 4096,
				       .max_reads = 50 };

	for (size_t i = 0; i < SS_GATHER_STEPS_MAX; i++)
		plan.steps[i] = (struct ss_gather_step){
			.address = BASE, .mask = UINT64_MAX, .size = 16, .max_nodes = 1
		};
	return plan;
}

static struct ss_gather *run(const struct ss_gather_plan *plan, const struct fake *fake)
{
	struct ss_gather *gather = NULL;
	_cleanup_error_ struct ss_error *error = ss_gather_new(plan, true, &gather);

	if (error)
		fail_msg("%s", ss_error_message(error));
	ss_gather_run(gather, &fake->source);
	return gather;
}

/* The nodes of one step, as addresses from BASE on; the last expected one is followed by
   a negative number. */
static void check_nodes(const struct ss_gather *gather, size_t step,
			const int64_t *expected)
{
	size_t at = gather->first[step];

	for (; *expected >= 0; expected++, at++) {
		assert_true(at < gather->first[step + 1]);
		assert_int_equal(gather->nodes[at].address, BASE + *expected);
	}
	assert_int_equal(at, gather->first[step + 1]);
}

#define NODES(...) ((const int64_t[]){ __VA_ARGS__ __VA_OPT__(, ) - 1 })

TEST(test_pointer_chain)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	put(fake, 8, BASE + 0x101); /* tagged */
	put(fake, 0x100, 0x1122334455667788);
	plan.step_count = 3;
	plan.steps[1].base = SS_GATHER_POINTER;
	plan.steps[1].field = 8;
	plan.steps[1].mask = ~UINT64_C(7);
	plan.steps[1].size = 8;
	plan.steps[2].base = SS_GATHER_NODE;
	plan.steps[2].parent = 1;
	plan.steps[2].offset = -0x40;
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(0));
	check_nodes(gather, 1, NODES(0x100));
	check_nodes(gather, 2, NODES(0xc0));
	assert_memory_equal(gather->nodes[1].bytes, fake->bytes + 0x100, 8);
	assert_int_equal(gather->reads, 3);
	assert_false(gather->truncated);
}

/* A list of four nodes, whose links point into the middle of the nodes. */
static struct ss_gather_plan make_list(struct fake *fake)
{
	static const size_t at[] = { 0x100, 0x300, 0x200, 0x400 };
	struct ss_gather_plan plan = make_plan();

	for (size_t i = 0; i + 1 < SS_ARRAY_SIZE(at); i++)
		put(fake, at[i] + 8, BASE + at[i + 1] + 8);
	plan.steps[0].address = BASE + 0x108;
	plan.steps[0].offset = -8;
	plan.steps[0].next = 8;
	plan.steps[0].max_nodes = 10;
	return plan;
}

TEST(test_list)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_list(fake);

	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(0x100, 0x300, 0x200, 0x400));
	assert_false(gather->truncated);
	/* Exactly as many as are allowed, and one fewer. */
	gather->plan.steps[0].max_nodes = 4;
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x100, 0x300, 0x200, 0x400));
	assert_false(gather->truncated);
	gather->plan.steps[0].max_nodes = 3;
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x100, 0x300, 0x200));
	assert_true(gather->truncated);
	/* The end of readable memory ends a list. */
	gather->plan.steps[0].max_nodes = 10;
	put(fake, 0x308, BASE + SIZE + 64);
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x100, 0x300, SIZE + 56));
	assert_int_equal(gather->nodes[2].size, 0);
	assert_false(gather->truncated);
	/* So does a node whose pointer to the next one is cut off. */
	put(fake, 0x308, BASE + SIZE - 8 + 8);
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x100, 0x300, SIZE - 8));
	assert_int_equal(gather->nodes[2].size, 8);
}

/* Cycles end, whether they lead back to the begin, to a later node or to themselves. */
/* Thread 0 has a copy of its stack, from BASE + 0x100 to BASE + 0x200. */
static bool read_copy(const struct ss_gather_source *source, size_t thread,
		      uint64_t address, void *bytes, size_t size)
{
	const struct fake *fake = (const struct fake *)source;
	uint64_t at = address - BASE;

	if (thread != 0 || at < 0x100 || at + size > 0x200)
		return false;
	memcpy(bytes, fake->bytes + at, size);
	return true;
}

/* A list on the stack of a thread is read from the copy of that stack, as far as that goes. */
TEST(test_stack_list)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	fake->source.read_stack = read_copy;
	fake->source.thread_count = 1;
	put(fake, 0x108, BASE + 0x140);
	put(fake, 0x148, BASE + 0x1e0);
	put(fake, 0x1e8, BASE + 0x300);
	plan.steps[0].base = SS_GATHER_REGISTER;
	plan.steps[0].parent = 7;
	plan.steps[0].next = 8;
	plan.steps[0].max_nodes = 10;
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(0x100, 0x140, 0x1e0, 0x300));
	assert_int_equal(gather->reads, 1);
	assert_memory_equal(gather->nodes[1].bytes, fake->bytes + 0x140, 16);
	/* Not that of another thread. */
	fake->source.thread_count = 2;
	ss_gather_run(gather, &fake->source);
	assert_int_equal(gather->reads, 2);
}

TEST(test_cycles)
{
	static const uint64_t back[] = { 0x108, 0x308, 0x208, 0x408 };

	for (size_t i = 0; i < SS_ARRAY_SIZE(back); i++) {
		_cleanup_free_ struct fake *fake = make_fake();
		struct ss_gather_plan plan = make_list(fake);
		plan.max_reads = SS_GATHER_READS_MAX;
		plan.max_nodes = SS_GATHER_NODES_MAX;
		plan.max_bytes = 1 << 20;
		plan.steps[0].max_nodes = SS_GATHER_NODES_MAX;
		put(fake, 0x408, BASE + back[i]);
		_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
		assert_in_range(gather->node_count, 4, 12);
		assert_false(gather->truncated);
	}
}

/* A copy ends where its parent says, as the stack of a goroutine does. */
TEST(test_ends)
{
	static const struct {
		uint64_t end;
		int64_t offset;
		size_t size;
	} cases[] = {
		{ BASE + 0x120, 0, 0x20 },    { BASE + 0x120, 0x18, 8 },
		{ BASE + 0x120, 0x20, 0 },    { BASE + 0x120, 0x40, 0 },
		{ BASE + 0x100000, 0, 0x40 }, { UINT64_MAX, 0, 0x40 },
		{ BASE + 0x100, 0, 0 },	      { 0, 0, 0 },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_free_ struct fake *fake = make_fake();
		struct ss_gather_plan plan = make_plan();
		put(fake, 0, BASE + 0x100);
		put(fake, 8, cases[i].end);
		plan.step_count = 2;
		plan.steps[1].base = SS_GATHER_POINTER;
		plan.steps[1].size = 0x40;
		plan.steps[1].offset = cases[i].offset;
		plan.steps[1].end_size = 8;
		plan.steps[1].end_field = 8;
		_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
		assert_int_equal(gather->node_count, cases[i].size ? 2 : 1);
		if (cases[i].size)
			assert_int_equal(gather->nodes[1].size, cases[i].size);
	}
}

/* Changes memory when it is read for the second time. */
static void read_changing(const struct ss_gather_source *source, struct ss_piece *pieces,
			  size_t count)
{
	const struct fake *fake = (const struct fake *)source;

	read_fake(source, pieces, count);
	((struct fake *)ss_drop_const(fake))->bytes[0x204]++;
}

/* Nodes that differ when the plan has been executed. */
TEST(test_changes)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();
	struct ss_gathered gathered = {};

	fake->source.read = read_changing;
	for (size_t i = 0; i < 4; i++)
		put(fake, i * 8, BASE + 0x100 + i * 0x80);
	plan.step_count = 2;
	plan.steps[0].size = 32;
	plan.steps[1].base = SS_GATHER_POINTER;
	plan.steps[1].stride = 8;
	plan.steps[1].check_size = 8;
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	ss_error_free(ss_gather_give(gather, &gathered));
	assert_int_equal(gathered.changed.count, 1);
	assert_true(ss_gathered_changed(&gathered, BASE + 0x200));
	assert_false(ss_gathered_changed(&gathered, BASE + 0x180));
	assert_false(ss_gathered_changed(&gathered, BASE + 0x280));
	ss_gathered_deinit(&gathered);
	/* Beyond the bytes that are checked. */
	plan.steps[1].check_size = 4;
	_cleanup_(ss_gather_cleanup) struct ss_gather *other = run(&plan, fake);
	ss_error_free(ss_gather_give(other, &gathered));
	assert_int_equal(gathered.changed.count, 0);
	ss_gathered_deinit(&gathered);
}

/* What Go's allgs and a Java thread list are: a pointer and a count, pointers to nodes. */
TEST(test_array_of_pointers)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	put(fake, 0, BASE + 0x100);
	put(fake, 8, 3);
	put(fake, 0x100, BASE + 0x400);
	put(fake, 0x110, BASE + 0x600); /* 0x108 stays 0 */
	put(fake, 0x118, BASE + 0x800);
	plan.step_count = 3;
	plan.steps[1] = (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						 .mask = UINT64_MAX,
						 .size = 64,
						 .count_field = 8,
						 .count_size = 8,
						 .element = 8,
						 .max_nodes = 1 };
	plan.steps[2] = (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						 .parent = 1,
						 .mask = UINT64_MAX,
						 .size = 32,
						 .stride = 8,
						 .max_nodes = 1 };
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 1, NODES(0x100));
	assert_int_equal(gather->nodes[1].size, 24);
	check_nodes(gather, 2, NODES(0x400, 0x600));
	/* A hostile count is cut to the size of the step. */
	put(fake, 8, UINT64_MAX);
	ss_gather_run(gather, &fake->source);
	assert_int_equal(gather->nodes[1].size, 64);
	check_nodes(gather, 2, NODES(0x400, 0x600, 0x800));
	put(fake, 8, 0);
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 1, NODES());
	/* Of 4 bytes: the upper half is something else. */
	gather->plan.steps[1].count_size = 4;
	put(fake, 8, UINT64_C(0xdead00000001));
	ss_gather_run(gather, &fake->source);
	assert_int_equal(gather->nodes[1].size, 8);
}

/* Lists that begin at each thread, followed side by side. */
TEST(test_threads)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	put(fake, 256, BASE + 0x300);
	put(fake, 0x300, BASE + 0x310);
	put(fake, 512, BASE + 0x400);
	plan.step_count = 3;
	plan.steps[0].base = SS_GATHER_REGISTER;
	plan.steps[0].parent = 7;
	plan.steps[0].max_nodes = 10;
	plan.steps[1].base = SS_GATHER_THREAD_POINTER;
	plan.steps[2].base = SS_GATHER_REGISTER; /* number 0 is not known */
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(256, 512, 0x300, 0x400, 0x310));
	check_nodes(gather, 1, NODES(512));
	check_nodes(gather, 2, NODES());
	assert_int_equal(gather->reads, 4);
}

/* Three threads, of which the second one is known by its thread pointer only. */
static bool selects_not_second(const struct ss_gather_source *source, size_t thread,
			       int32_t *ret_tid, uint64_t *ret_pointer)
{
	(void)source;
	*ret_tid = thread == 1 ? 99 : (int32_t)thread + 1;
	*ret_pointer = thread == 1 ? 0x7000 : 0;
	return thread != 1;
}

static bool selects_second(const struct ss_gather_source *source, size_t thread,
			   int32_t *ret_tid, uint64_t *ret_pointer)
{
	return !selects_not_second(source, thread, ret_tid, ret_pointer);
}

/* Addresses that are known before are read at once, of those threads that are wanted. */
TEST(test_roots)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	put(fake, 0x300, BASE + 0x500);
	put(fake, 0x200, BASE + 0x400);
	plan.step_count = 2;
	plan.steps[0].base = SS_GATHER_ROOT;
	plan.steps[1].base = SS_GATHER_POINTER;
	plan.root_count = 4;
	for (uint32_t i = 0; i < 3; i++)
		plan.roots[i] =
			(struct ss_gather_root){ .address = BASE + 0x300 - i * 0x80,
						 .tid = (int32_t)i + 1,
						 .thread_pointer = i == 1 ? 0x7000 : 0 };
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(0x300, 0x280, 0x200)); /* none for address 0 */
	check_nodes(gather, 1, NODES(0x500, 0x400));
	assert_int_equal(gather->reads, 2);
	fake->source.thread_count = 3;
	fake->source.selects = selects_not_second;
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x300, 0x200));
	fake->source.selects = selects_second;
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x280));
	fake->source.selects_others = true;
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 0, NODES(0x300, 0x200));
}

/* Some roots first, and the others later: what was copied stays, and steps that begin elsewhere
   are not repeated. */
TEST(test_more_roots)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	put(fake, 0x300, BASE + 0x500);
	put(fake, 0x200, BASE + 0x400);
	plan.step_count = 3;
	plan.steps[0].base = SS_GATHER_ADDRESS;
	plan.steps[0].address = BASE + 0x100;
	plan.steps[1].base = SS_GATHER_ROOT;
	plan.steps[2].base = SS_GATHER_POINTER;
	plan.steps[2].parent = 1;
	plan.root_count = 2;
	plan.roots[0] = (struct ss_gather_root){ .address = BASE + 0x300, .tid = 1 };
	plan.roots[1] = (struct ss_gather_root){ .address = BASE + 0x200,
						 .thread_pointer = 0x7000 };
	fake->source.thread_count = 3;
	fake->source.selects = selects_not_second;
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(0x100));
	check_nodes(gather, 1, NODES(0x300));
	check_nodes(gather, 2, NODES(0x500));
	fake->source.selects_others = true;
	ss_gather_run_more(gather, &fake->source);
	assert_int_equal(gather->node_count, 5);
	check_nodes(gather, 0, NODES());
	check_nodes(gather, 1, NODES(0x200));
	check_nodes(gather, 2, NODES(0x400));
	assert_int_equal(gather->nodes[2].address, BASE + 0x500);
}

/* What is copied at a later moment is handed out separately. */
TEST(test_later)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();
	struct ss_gathered first = {};
	struct ss_gathered later = {};

	put(fake, 0x300, 1);
	plan.step_count = 1;
	plan.steps[0].address = BASE + 0x300;
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	put(fake, 0x300, 2);
	ss_gather_run_later(gather, &fake->source);
	assert_null(ss_gather_give_later(gather, &later));
	assert_null(ss_gather_give(gather, &first));
	assert_int_equal(first.blocks.count, 1);
	assert_int_equal(first.blocks.items[0].bytes[0], 1);
	assert_int_equal(later.blocks.count, 1);
	assert_int_equal(later.blocks.items[0].address, BASE + 0x300);
	assert_int_equal(later.blocks.items[0].bytes[0], 2);
	assert_null(later.bytes);
	ss_gathered_deinit(&later);
	ss_gathered_deinit(&first);
}

/* Each turn copies memory as it is then, and has limits of its own. */
TEST(test_turns)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	plan.step_count = 1;
	plan.max_reads = 1;
	plan.max_nodes = 3;
	plan.steps[0].address = BASE + 0x300;
	put(fake, 0x300, 1);
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	assert_int_equal(gather->node_count, 1);
	put(fake, 0x300, 2);
	assert_int_equal(ss_gather_run_turn(gather, &fake->source, 1, 64), 1);
	assert_int_equal(gather->node_count, 2);
	assert_int_equal(gather->nodes[0].bytes[0], 1);
	assert_int_equal(gather->nodes[1].bytes[0], 2);
	assert_false(gather->truncated);
	assert_int_equal(ss_gather_run_turn(gather, &fake->source, 0, 64), 2);
	assert_int_equal(gather->node_count, 2);
	assert_true(gather->truncated);
	/* The last node of the plan */
	assert_int_equal(ss_gather_run_turn(gather, &fake->source, 9, 64), 2);
	assert_int_equal(ss_gather_run_turn(gather, &fake->source, 9, 64), 3);
	assert_int_equal(gather->node_count, 3);
	ss_gather_clear(gather);
	assert_int_equal(ss_gather_run_turn(gather, &fake->source, 9, 64), 0);
	assert_int_equal(gather->node_count, 1);
	assert_false(gather->truncated);
}

/* What several nodes point to is copied once; a list may contain it, too. */
TEST(test_repeated)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();

	plan.step_count = 2;
	plan.steps[0].base = SS_GATHER_ROOT;
	plan.steps[1].base = SS_GATHER_POINTER;
	plan.root_count = 3;
	for (uint32_t i = 0; i < 3; i++) {
		put(fake, 0x100 * (i + 1), BASE + (i == 1 ? 0x480 : 0x500));
		plan.roots[i] =
			(struct ss_gather_root){ .address = BASE + 0x100 * (i + 1),
						 .tid = 1 };
	}
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	check_nodes(gather, 0, NODES(0x100, 0x200, 0x300));
	check_nodes(gather, 1, NODES(0x500, 0x480));
	ss_gather_run(gather, &fake->source);
	check_nodes(gather, 1, NODES(0x500, 0x480));
}

TEST(test_limits)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_list(fake);

	plan.max_nodes = 3;
	_cleanup_(ss_gather_cleanup) struct ss_gather *nodes = run(&plan, fake);
	check_nodes(nodes, 0, NODES(0x100, 0x300, 0x200));
	assert_true(nodes->truncated);
	plan.max_nodes = 100;
	plan.max_bytes = 47;
	_cleanup_(ss_gather_cleanup) struct ss_gather *bytes = run(&plan, fake);
	check_nodes(bytes, 0, NODES(0x100, 0x300));
	assert_true(bytes->truncated);
	plan.max_bytes = 4096;
	plan.max_reads = 2;
	plan.step_count = 2; /* for which nothing is left */
	_cleanup_(ss_gather_cleanup) struct ss_gather *reads = run(&plan, fake);
	check_nodes(reads, 0, NODES(0x100, 0x300));
	check_nodes(reads, 1, NODES());
	assert_true(reads->truncated);
	assert_int_equal(reads->reads, 2);
	/* A range that wraps around is not read. */
	plan = make_plan();
	plan.steps[0].address = UINT64_MAX - 3;
	_cleanup_(ss_gather_cleanup) struct ss_gather *wrapped = run(&plan, fake);
	check_nodes(wrapped, 0, NODES());
}

static void refuse(const struct ss_gather_plan *plan, const char *why)
{
	_cleanup_error_ struct ss_error *error = ss_gather_plan_check(plan);

	assert_non_null(error);
	assert_int_equal(ss_error_code(error), SS_ERROR_INVALID);
	assert_non_null(strstr(ss_error_message(error), why));
}

#define REFUSE(why, ...)                                                                 \
	do {                                                                             \
		struct ss_gather_plan plan = make_plan();                                \
		struct ss_gather_step *step = &plan.steps[1];                            \
		plan.step_count = 2;                                                     \
		step->base = SS_GATHER_POINTER;                                          \
		__VA_ARGS__;                                                             \
		refuse(&plan, why);                                                      \
	} while (0)

TEST(test_refused_plans)
{
	struct ss_gather_plan good = make_plan();

	assert_null(ss_gather_plan_check(&good));
	good.step_count = SS_GATHER_STEPS_MAX;
	assert_null(ss_gather_plan_check(&good));
	REFUSE("version", plan.size--);
	REFUSE("version", plan.root_count = SS_GATHER_ROOTS_MAX + 1);
	REFUSE("0 steps", plan.step_count = 0);
	REFUSE("33 steps", plan.step_count = SS_GATHER_STEPS_MAX + 1);
	REFUSE("limit", plan.max_nodes = 0);
	REFUSE("limit", plan.max_nodes = SS_GATHER_NODES_MAX + 1);
	REFUSE("limit", plan.max_bytes = 0);
	REFUSE("limit", plan.max_bytes = SS_GATHER_BYTES_MAX + 1);
	REFUSE("limit", plan.max_reads = 0);
	REFUSE("limit", plan.max_reads = SS_GATHER_READS_MAX + 1);
	REFUSE("step 1: its base", step->base = SS_GATHER_ROOT + 1);
	REFUSE("earlier step", step->parent = 1);
	REFUSE("earlier step", step->parent = UINT32_MAX);
	REFUSE("copies nothing", step->size = 0);
	REFUSE("too much", step->size = SS_GATHER_COPY_MAX + 1);
	REFUSE("no nodes", step->max_nodes = 0);
	REFUSE("checks more", step->check_size = step->size + 1);
	REFUSE("checks more", step->reserved = 1);
	REFUSE("too many", step->max_nodes = SS_GATHER_NODES_MAX + 1);
	REFUSE("mask", step->mask = 0);
	REFUSE("pointer lies", step->field = 9);
	REFUSE("pointer lies", step->field = UINT32_MAX);
	REFUSE("stride", step->stride = 7);
	REFUSE("next node", step->max_nodes = 2; step->next = 9);
	REFUSE("next node", step->max_nodes = 2; step->next = UINT32_MAX);
	REFUSE("4 nor 8", step->count_size = 2);
	REFUSE("count lies", step->count_size = 8; step->count_field = UINT32_MAX);
	REFUSE("elements", step->count_size = 8);
	REFUSE("no pointer", step->base = SS_GATHER_NODE; step->field = 8);
	REFUSE("no parent", step->base = SS_GATHER_ADDRESS; step->count_size = 8);
}

/* Copies that overlap read as one. */
TEST(test_overlaps)
{
	_cleanup_free_ struct fake *fake = make_fake();
	struct ss_gather_plan plan = make_plan();
	struct ss_capture capture = {};
	char bytes[64];

	for (size_t i = 0; i < SIZE; i++)
		fake->bytes[i] = (uint8_t)i;
	plan.step_count = 4;
	plan.steps[0].address = BASE + 40;
	plan.steps[0].size = 24;
	plan.steps[1].address = BASE + 8;
	plan.steps[1].size = 40;
	plan.steps[2].address = BASE + 16;
	plan.steps[3].address = BASE + 256;
	_cleanup_(ss_gather_cleanup) struct ss_gather *gather = run(&plan, fake);
	assert_null(ss_gather_give(gather, &capture.gathered));
	assert_int_equal(capture.gathered.blocks.count, 3);
	assert_int_equal(ss_capture_read(&capture, BASE + 8, bytes, 64), 56);
	assert_memory_equal(bytes, fake->bytes + 8, 56);
	assert_int_equal(ss_capture_read(&capture, BASE + 7, bytes, 64), 0);
	assert_int_equal(ss_capture_read(&capture, BASE + 260, bytes, 64), 12);
	ss_gathered_deinit(&capture.gathered);
}

/* A child of fork() has the memory of the test at the same addresses. */
struct item {
	struct item *next;
	uint64_t index;
	volatile uint64_t turns;
};

enum { ITEMS = 500 };
static struct item items[ITEMS];
static struct item *head;

static void *turn_for_ever(void *data)
{
	for (;;) {
		for (struct item *item = head; item; item = item->next)
			item->turns++;
	}
	return data;
}

static void turning(int ready)
{
	pthread_t thread;

	for (size_t i = 0; i < ITEMS; i++) { /* not in the order of addresses */
		items[i].index = i * 7 % ITEMS;
		items[i].next = i * 7 % ITEMS == ITEMS - 1 ? NULL : &items[0];
	}
	for (size_t i = 0; i < ITEMS; i++) {
		for (size_t k = 0; k < ITEMS; k++) {
			if (items[k].index == items[i].index + 1)
				items[i].next = &items[k];
		}
	}
	head = &items[0];
	if (pthread_create(&thread, NULL, turn_for_ever, NULL) != 0)
		_exit(1);
	say_ready(ready);
	(void)sleep_for_ever(NULL);
}

/* A thread counts in all nodes, one after the other: if the list was read while it stood
   still, a node has counted as far as the one before it, or one less just once. */
static void check_list(const struct ss_capture *capture)
{
	uint64_t address = 0;
	uint64_t last = 0;
	size_t steps = 0;
	size_t count = 0;

	assert_int_equal(ss_capture_read(capture, (uintptr_t)&head, &address, 8), 8);
	for (; address; count++) {
		struct item item;
		assert_int_equal(ss_capture_read(capture, address, &item, sizeof(item)),
				 sizeof(item));
		assert_int_equal(item.index, count);
		steps += count > 0 && item.turns != last;
		assert_true(count == 0 || item.turns == last || item.turns + 1 == last);
		last = item.turns;
		address = (uintptr_t)item.next;
	}
	assert_int_equal(count, ITEMS);
	assert_true(steps <= 1);
}

TEST(test_process)
{
	struct ss_gather_plan plan = make_plan();
	struct ss_capture_options options = { .size = sizeof(options), .plan = &plan };
	static const enum ss_mode modes[] = { SS_MODE_STOP, SS_MODE_AUTO, SS_MODE_LIVE };
	enum ss_error_code code = 0;
	uint64_t value = 0;
	size_t checked = 0;

	plan = (struct ss_gather_plan){ .size = sizeof(plan),
					.step_count = 2,
					.max_nodes = 2 * ITEMS,
					.max_bytes = 1 << 20,
					.max_reads = SS_GATHER_READS_MAX };
	plan.steps[0] = (struct ss_gather_step){
		.address = (uintptr_t)&head, .mask = UINT64_MAX, .size = 8, .max_nodes = 1
	};
	plan.steps[1] = (struct ss_gather_step){ .base = SS_GATHER_POINTER,
						 .mask = UINT64_MAX,
						 .size = sizeof(struct item),
						 .max_nodes = ITEMS };
	pid_t child = start(turning);
	for (size_t i = 0; i < 30; i++) {
		options.mode = modes[i % SS_ARRAY_SIZE(modes)];
		struct ss_capture *capture = take(child, &options, &code);
		assert_non_null(capture);
		/* Otherwise the thread did not stop in time, on a machine under load. */
		if (capture->process.consistent) {
			assert_false(capture->gathered.truncated);
			check_list(capture);
			checked++;
		}
		ss_capture_free(capture);
	}
	assert_true(checked > 0);
	/* Without a plan nothing of it is there. */
	options.plan = NULL;
	struct ss_capture *bare = take(child, &options, &code);
	assert_non_null(bare);
	assert_int_equal(ss_capture_read(bare, (uintptr_t)&head, &value, 8), 0);
	ss_capture_free(bare);
	options.plan = &plan;
	plan.steps[1].parent = 1;
	assert_null(take(child, &options, &code));
	assert_int_equal(code, SS_ERROR_INVALID);
	stop(child);
}

#ifdef SYS_pause
enum { PAUSE = SYS_pause };
#else
enum { PAUSE = SYS_ppoll };
#endif

/* Takes a capture in which all threads of the child sleep, and have stopped in time: on a machine under
   load some have not begun, and may be in a call with a page of their stack that is not there yet,
   or do not stop. */
static struct ss_capture *take_sleepers(pid_t child,
					const struct ss_capture_options *options)
{
	enum ss_error_code code = 0;

	for (int i = 0; i < 1000; i++) {
		struct ss_capture *capture = take(child, options, &code);
		assert_non_null(capture);
		assert_int_equal(capture->threads.count, THREADS);
		bool all = capture->process.consistent;
		for (size_t k = 0; k < THREADS; k++) {
			const struct ss_capture_thread *thread =
				&capture->threads.items[k];
			all &= thread->lock.freeze_round > 0 &&
			       thread->lock.freeze_round <= 2 &&
			       thread->syscall.number == PAUSE;
		}
		if (all)
			return capture;
		ss_capture_free(capture);
		(void)usleep(1000);
	}
	return NULL;
}

/* The frame pointers of a thread that stands still, and its thread pointer, by which it
   reaches its own pthread_t. */
TEST(test_anchors)
{
	struct ss_gather_plan plan = make_plan();
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_STOP,
						    .plan = &plan };
	uint64_t self = 0;

	plan.step_count = 2;
	plan.max_bytes = 4 << 20;
	plan.steps[0].base = SS_GATHER_THREAD_POINTER;
	plan.steps[0].size = 256;
	plan.steps[1].base = SS_GATHER_REGISTER;
	plan.steps[1].parent = ss_arch_host.sp;
	pid_t child = start(sleepers);
	struct ss_capture *capture = take_sleepers(child, &options);
	assert_non_null(capture);
	for (size_t i = 0; i < THREADS; i++) {
		uint64_t pointer = capture->threads.items[i].thread_pointer;
		uint64_t sp = ss_regs_sp(&ss_arch_host, &capture->threads.items[i].regs);
		/* glibc and musl keep the address of the block in itself. */
		assert_int_equal(ss_capture_read(capture, pointer, &self, 8), 8);
		assert_int_equal(self, pointer);
		assert_int_equal(ss_capture_read(capture, sp, &self, 8), 8);
	}
	assert_true(capture->gathered.blocks.count >= 2 * THREADS - 1);
	ss_capture_free(capture);
	stop(child);
}

TEST(test_id)
{
	const struct ss_gather_plan plan = {
		.step_count = 1,
		.root_count = 2,
		.roots = { { .address = BASE, .thread_pointer = 1, .tid = 7 },
			   { .address = BASE + 64, .thread_pointer = 2, .tid = 8 } }
	};
	struct ss_gather_plan other = plan;

	other.roots[1].tid = 9; /* that of another pid namespace */
	assert_int_equal(ss_gather_plan_id(&plan), ss_gather_plan_id(&other));
	other.roots[1].address++;
	assert_int_not_equal(ss_gather_plan_id(&plan), ss_gather_plan_id(&other));
	other = plan;
	other.roots[1].thread_pointer++;
	assert_int_not_equal(ss_gather_plan_id(&plan), ss_gather_plan_id(&other));
	other = plan;
	other.steps[0].size++;
	assert_int_not_equal(ss_gather_plan_id(&plan), ss_gather_plan_id(&other));
}
