/*
 * The decoder of goroutines, over memory that is made up: a list of struct g in the layout
 * of each version, and what does not validate.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/go/goroutines.h"
#include "data/pipeline.h"
#include "data/gather.h"

enum {
	BASE = 0x10000,
	SIZE = 0x8000,
	LIST = BASE,
	POINTERS = BASE + 0x100,
	GS = BASE + 0x400,
	G_STEP = 0x100,
	M = BASE + 0x3000,
	STACKS = BASE + 0x100000, /* not read here */
	STACK_SIZE = 0x800,
	COUNT = 20,
	RUNNABLE = 1,
	RUNNING = 2,
	SYSCALL = 3,
	WAITING = 4,
	DEAD = 6,
	SCANNED = 0x1000,
};

struct fake {
	struct ss_memory memory;
	struct ss_go_program program;
	struct ss_gathered gathered;
	uint8_t bytes[SIZE];
};

static size_t read_fake(const struct ss_memory *memory, uint64_t address, void *bytes,
			size_t size)
{
	const struct fake *fake = (const struct fake *)memory;

	return unit_copy(bytes, size, fake->bytes, SIZE, address - BASE);
}

static void put(struct fake *fake, uint64_t address, uint64_t value, size_t size)
{
	memcpy(fake->bytes + (address - BASE), &value, size);
}

static uint64_t g_of(size_t index)
{
	return GS + index * G_STEP;
}

static void put_g(struct fake *fake, size_t index, uint32_t status, uint8_t reason)
{
	const struct ss_go_layout *layout = fake->program.layout;
	uint64_t g = g_of(index);
	uint64_t low = STACKS + index * STACK_SIZE;

	put(fake, POINTERS + index * 8, g, 8);
	put(fake, g + SS_GO_STACK_LO, low, 8);
	put(fake, g + SS_GO_STACK_HI, low + STACK_SIZE, 8);
	put(fake, g + SS_GO_SP, low + 0x700, 8);
	put(fake, g + SS_GO_PC, 0x401000 + index, 8);
	put(fake, g + SS_GO_SELF, g, 8);
	put(fake, g + layout->bp, low + 0x710, 8);
	put(fake, g + layout->syscall_sp, low + 0x600, 8);
	put(fake, g + layout->syscall_sp + 8, 0x402000, 8);
	put(fake, g + layout->status, status, 4);
	put(fake, g + layout->id, COUNT - index, 8); /* descending */
	put(fake, g + layout->since, 1000 + index, 8);
	put(fake, g + layout->reason, reason, 1);
	if (layout->stops)
		put(fake, g + layout->stops, 3 + index, 1);
}

static struct fake *make(unsigned minor)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake->memory.read = read_fake;
	fake->program.layout = ss_go_layout_find(minor);
	assert_non_null(fake->program.layout);
	put(fake, LIST, POINTERS, 8);
	put(fake, LIST + 8, COUNT, 8);
	put(fake, LIST + 16, COUNT + 5, 8);
	put(fake, M + fake->program.layout->thread_id, 4711, 8);
	for (size_t i = 0; i < COUNT; i++)
		put_g(fake, i, WAITING, 2);
	return fake;
}

static struct ss_go_goroutines read_all(const struct fake *fake)
{
	struct ss_go_goroutines found;

	assert_true(ss_go_goroutines_read(&fake->program, LIST, &fake->memory,
					  &fake->gathered, &found));
	return found;
}

/* The goroutine at an index of the list. */
static struct ss_go_goroutine at(const struct ss_go_goroutines *found, size_t index)
{
	return found->items.items[found->items.count - 1 - index];
}

/* By the number of its reason, which differs between versions. */
TEST(test_nil_channel)
{
	for (unsigned minor = 19; minor <= 27; minor++) {
		_cleanup_free_ struct fake *fake = make(minor);
		const struct ss_go_layout *layout = fake->program.layout;
		size_t count = 0;
		for (size_t reason = 0; reason < layout->reason_count; reason++) {
			put_g(fake, 0, WAITING, (uint8_t)reason);
			struct ss_go_goroutines found = read_all(fake);
			const struct ss_go_goroutine one = at(&found, 0);
			const char *nil = one.wait_reason ?
						  strstr(one.wait_reason, "(nil chan)") :
						  NULL;
			assert_int_equal(one.endless,
					 nil ? SS_ENDLESS_NIL_CHANNEL : SS_ENDLESS_NO);
			count += nil != NULL;
			ss_go_goroutines_deinit(&found);
		}
		assert_int_equal(count, 2);
	}
}

TEST(test_versions)
{
	assert_null(ss_go_layout_find(18));
	assert_null(ss_go_layout_find(0));
	assert_null(ss_go_layout_find(28));
	for (unsigned minor = 19; minor <= 27; minor++) {
		_cleanup_free_ struct fake *fake = make(minor);
		put_g(fake, 1, RUNNING, 0);
		put(fake, g_of(1) + SS_GO_M, M, 8);
		put_g(fake, 2, SYSCALL, 0);
		put_g(fake, 3, RUNNABLE, 0);
		put_g(fake, 4, WAITING | SCANNED, 200); /* no such reason */
		struct ss_go_goroutines found = read_all(fake);
		assert_null(found.problem);
		assert_int_equal(found.unread, 0);
		assert_int_equal(found.items.count, COUNT);
		struct ss_go_goroutine one = at(&found, 0);
		assert_int_equal(one.id, COUNT);
		assert_int_equal(one.status, SS_STATUS_WAITING);
		assert_string_equal(one.wait_reason, "IO wait");
		assert_int_equal(one.since, 1000);
		assert_int_equal(one.pc, 0x401000);
		assert_int_equal(one.sp, STACKS + 0x700);
		assert_int_equal(one.bp, STACKS + 0x710);
		assert_int_equal(one.thread, 0);
		assert_int_equal(one.run_mark != 0, minor != 20);
		assert_true(one.run_mark == 0 || one.run_mark != at(&found, 1).run_mark);
		one = at(&found, 1);
		assert_int_equal(one.status, SS_STATUS_RUNNING);
		assert_int_equal(one.pc, 0);
		assert_int_equal(one.thread, 4711);
		one = at(&found, 2);
		assert_int_equal(one.status, SS_STATUS_SYSCALL);
		assert_int_equal(one.pc, 0x402000);
		assert_int_equal(one.sp, STACKS + 2 * STACK_SIZE + 0x600);
		assert_int_equal(at(&found, 3).status, SS_STATUS_RUNNABLE);
		assert_int_equal(at(&found, 4).status, SS_STATUS_WAITING);
		assert_null(at(&found, 4).wait_reason);
		ss_go_goroutines_deinit(&found);
	}
}

/* The words that Go has for mutexes, from the version on that tells them apart. */
TEST(test_reasons)
{
	static const struct {
		unsigned minor;
		uint8_t reason;
		const char *words;
	} cases[] = {
		{ 19, 18, "semacquire" },	 { 21, 21, "sync.Mutex.Lock" },
		{ 24, 23, "sync.RWMutex.Lock" }, { 26, 22, "sync.Mutex.Lock" },
		{ 25, 22, "sync.Mutex.Lock" },	 { 20, 21, NULL },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_free_ struct fake *fake = make(cases[i].minor);
		put_g(fake, 0, WAITING, cases[i].reason);
		struct ss_go_goroutines found = read_all(fake);
		const char *words = at(&found, 0).wait_reason;
		if (cases[i].words)
			assert_string_equal(words, cases[i].words);
		else
			assert_null(words);
		ss_go_goroutines_deinit(&found);
	}
}

TEST(test_ended_and_changed)
{
	_cleanup_free_ struct fake *fake = make(24);
	uint64_t changed[] = { g_of(3), g_of(5) };

	put_g(fake, 0, DEAD, 0);
	put(fake, g_of(0) + SS_GO_STACK_LO, 0, 8);
	fake->gathered.changed.items = changed;
	fake->gathered.changed.count = 2;
	struct ss_go_goroutines found = read_all(fake);
	assert_int_equal(found.items.count, COUNT - 1);
	for (size_t i = 1; i < COUNT; i++) {
		struct ss_go_goroutine one = at(&found, i - 1);
		/* Index 0 has ended, and was the last one. */
		assert_int_equal(one.changed, i == 3 || i == 5);
		assert_int_equal(one.pc != 0, i != 3 && i != 5);
	}
	ss_go_goroutines_deinit(&found);
}

/* A few that are torn do not count; many mean another layout. */
TEST(test_invalid)
{
	for (size_t bad = 1; bad <= COUNT; bad++) {
		_cleanup_free_ struct fake *fake = make(24);
		for (size_t i = 0; i < bad; i++)
			put(fake, g_of(i) + SS_GO_SELF, g_of(i) + 8, 8);
		struct ss_go_goroutines found = read_all(fake);
		if (bad == 1)
			assert_null(found.problem);
		else
			assert_non_null(found.problem);
		assert_int_equal(found.items.count, bad == 1 ? COUNT - 1 : 0);
		assert_int_equal(found.unread, bad);
		ss_go_goroutines_deinit(&found);
	}
}

static void check_one_invalid(uint32_t offset, uint64_t value, size_t size)
{
	_cleanup_free_ struct fake *fake = make(22);

	put(fake, g_of(7) + offset, value, size);
	struct ss_go_goroutines found = read_all(fake);
	assert_int_equal(found.items.count, COUNT - 1);
	assert_int_equal(found.unread, 1);
	ss_go_goroutines_deinit(&found);
}

TEST(test_fields)
{
	const struct ss_go_layout *layout = ss_go_layout_find(22);

	check_one_invalid(layout->status, 7, 4);
	check_one_invalid(layout->status, 0x40000000, 4);
	check_one_invalid(layout->id, 0, 8);
	check_one_invalid(layout->id, UINT64_MAX, 8);
	check_one_invalid(SS_GO_STACK_LO, 0, 8);
	check_one_invalid(SS_GO_STACK_HI, 0, 8);
	check_one_invalid(SS_GO_STACK_HI, STACKS + 7 * STACK_SIZE + 0x801, 8);
	check_one_invalid(SS_GO_SP, STACKS, 8);
	check_one_invalid(SS_GO_SP, STACKS + 8 * STACK_SIZE, 8);
}

TEST(test_list)
{
	static const uint64_t lists[][3] = { { POINTERS, 20, 19 },
					     { 0, 1, 1 },
					     { POINTERS, UINT64_MAX, 1 } };

	for (size_t i = 0; i < SS_ARRAY_SIZE(lists); i++) {
		_cleanup_free_ struct fake *fake = make(19);
		for (size_t j = 0; j < 3; j++)
			put(fake, LIST + 8 * j, lists[i][j], 8);
		struct ss_go_goroutines found = read_all(fake);
		assert_non_null(found.problem);
		assert_int_equal(found.items.count, 0);
		ss_go_goroutines_deinit(&found);
	}
	/* Longer than what can be read. */
	_cleanup_free_ struct fake *fake = make(19);
	put(fake, LIST + 8, UINT64_MAX, 8);
	put(fake, LIST + 16, UINT64_MAX, 8);
	struct ss_go_goroutines found = read_all(fake);
	assert_true(found.unread > 1000000);
	ss_go_goroutines_deinit(&found);
	/* Nothing was copied. */
	assert_true(ss_go_goroutines_read(&fake->program, BASE - 8, &fake->memory,
					  &fake->gathered, &found));
	assert_non_null(found.problem);
}

TEST(test_plan)
{
	for (unsigned minor = 19; minor <= 27; minor++) {
		struct ss_gather_plan plan = {};
		const struct ss_go_program program = { .layout =
							       ss_go_layout_find(minor) };
		for (unsigned i = 0; i < SS_GO_RUNTIMES_MAX; i++) {
			const uint32_t first = plan.step_count;
			ss_go_goroutines_plan(&program, LIST + i, &plan);
			assert_null(ss_gather_plan_check(&plan));
			assert_int_equal(plan.steps[first].address, LIST + i);
			assert_int_equal(plan.steps[first + 1].parent, first);
		}
	}
}
