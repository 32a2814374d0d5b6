#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "stacksnap/trace.h"
#include "trace/stacks.h"

enum { WORDS = 8, WORD = 8, NUMBER = 7 };

static const uint64_t stack_at = 0x7f0000001000;
static const uint64_t caller = 0x401234;
static const uint64_t function = 0x402000;

/* A function with its frame pointer, a register, and its return address. */
struct example {
	struct ss_stack_question question;
	uint64_t words[WORDS];
};

static void set_pc(struct example *example, uint64_t pc)
{
	example->question.pc = example->question.regs.value[ss_arch_host.pc] = pc;
}

static struct example make(uint64_t address)
{
	struct example example = {
		.question = { .address = address, .size = WORDS * WORD },
		.words = { 111, address + 6 * WORD, 222, caller, 333 },
	};
	struct ss_regs *regs = &example.question.regs;

	regs->valid = UINT64_C(1) << ss_arch_host.pc | UINT64_C(1) << ss_arch_host.sp |
		      UINT64_C(1) << ss_arch_host.fp;
	set_pc(&example, function);
	regs->value[ss_arch_host.sp] = address;
	regs->value[ss_arch_host.fp] = address + WORD;
	return example;
}

static const struct ss_frame frames[] = { { .pc = 0x402000 }, { .pc = 0x401234 } };
static const struct ss_trace_stack stack = { .frames = frames,
					     .count = SS_ARRAY_SIZE(frames) };
/* Not words 0 and 4. */
static const uint32_t offsets[] = { WORD, 2 * WORD, 3 * WORD };

static void add(struct ss_stack_cache *cache, const struct example *example,
		uint32_t number)
{
	ss_stack_cache_add(cache, &stack, &example->question,
			   (const uint8_t *)example->words, offsets,
			   SS_ARRAY_SIZE(offsets), number);
}

static uint32_t find(const struct ss_stack_cache *cache, const struct example *example)
{
	return ss_stack_cache_find(cache, &example->question,
				   (const uint8_t *)example->words);
}

TEST(test_same)
{
	__attribute__((cleanup(ss_stack_cache_deinit))) struct ss_stack_cache cache = {};
	struct example example = make(stack_at);

	assert_int_equal(find(&cache, &example), 0);
	add(&cache, &example, NUMBER);
	assert_int_equal(find(&cache, &example), NUMBER);
	/* On the stack of another thread. */
	example = make(stack_at + 0x123450);
	assert_int_equal(find(&cache, &example), NUMBER);
	/* Words that were not read, and data. */
	example.words[0] = caller;
	example.words[4] = stack_at;
	example.words[2] = 444;
	assert_int_equal(find(&cache, &example), NUMBER);
}

TEST(test_different)
{
	__attribute__((cleanup(ss_stack_cache_deinit))) struct ss_stack_cache cache = {};
	struct example example = make(stack_at);

	add(&cache, &example, NUMBER);
	example.words[3] = caller + 1;
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	example.words[1] += WORD; /* the outer frame is elsewhere */
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	example.words[2] = stack_at + WORD; /* data was there */
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	set_pc(&example, function + 1);
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	example.question.regs.value[ss_arch_host.fp] += WORD;
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	example.question.regs.valid &= ~(UINT64_C(1) << ss_arch_host.fp);
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	example.question.size -= WORD;
	assert_int_equal(find(&cache, &example), 0);
	example = make(stack_at);
	example.question.truncated = 1;
	assert_int_equal(find(&cache, &example), 0);
}

/* Where a stack ended at a value that is no return address, another one may go on. */
TEST(test_ends)
{
	struct ss_trace_stack ended = stack;
	const struct example example = make(stack_at);

	for (int end = SS_END_ROOT; end <= SS_END_GUESSED; end++) {
		__attribute__((
			cleanup(ss_stack_cache_deinit))) struct ss_stack_cache cache = {};
		ended.end = (enum ss_end)end;
		ss_stack_cache_add(&cache, &ended, &example.question,
				   (const uint8_t *)example.words, offsets,
				   SS_ARRAY_SIZE(offsets), NUMBER);
		const bool kept = end == SS_END_ROOT || end == SS_END_LIMIT;
		if (find(&cache, &example) != (kept ? NUMBER : 0))
			fail_msg("end %d: found %u", end, find(&cache, &example));
	}
}

/* A return address of zero is the root; zero within a frame is data. */
TEST(test_zero)
{
	static const uint32_t all[] = { 0, WORD, 2 * WORD, 3 * WORD, 4 * WORD };
	__attribute__((cleanup(ss_stack_cache_deinit))) struct ss_stack_cache cache = {};
	struct example example = make(stack_at);

	example.words[2] = example.words[4] = 0;
	ss_stack_cache_add(&cache, &stack, &example.question,
			   (const uint8_t *)example.words, all, SS_ARRAY_SIZE(all),
			   NUMBER);
	example.words[2] = 555;
	assert_int_equal(find(&cache, &example), NUMBER);
	example.words[4] = 0x403000;
	assert_int_equal(find(&cache, &example), 0);
}

/* Several stacks at one place, and more than the cache holds. */
TEST(test_many)
{
	__attribute__((cleanup(ss_stack_cache_deinit))) struct ss_stack_cache cache = {};
	struct example example = make(stack_at);

	for (uint32_t i = 0; i < 100; i++) {
		example.words[1] = stack_at + i % WORDS * WORD;
		set_pc(&example, function + i / WORDS);
		add(&cache, &example, i + 1);
	}
	for (uint32_t i = 0; i < 100; i++) {
		example.words[1] = stack_at + i % WORDS * WORD;
		set_pc(&example, function + i / WORDS);
		assert_int_equal(find(&cache, &example), i + 1);
	}
	for (uint32_t i = 0; i < 40000; i++) {
		set_pc(&example, function + i);
		add(&cache, &example, i + 1);
	}
	assert_int_equal(find(&cache, &example), 40000);
	assert_in_range(cache.items.count, 1, 10000);
}
