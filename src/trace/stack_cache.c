#include "trace/stack_cache.h"

#include <string.h>
#include "stacksnap/trace.h"

enum {
	ITEMS_MAX = 8192,
	WORDS_MAX = 1 << 20,
	TRIES_MAX = 256,  /* stacks of one place */
	BEYOND = 64 << 10 /* of a truncated stack: the next frame is not farther */
};

/* Where stacks are that can be the same. */
struct place {
	uint64_t pc;
	uint32_t size;
	uint32_t truncated;
};

void ss_stack_cache_deinit(struct ss_stack_cache *cache)
{
	ss_idtable_deinit(&cache->places);
	ss_vector_free(&cache->heads);
	ss_vector_free(&cache->items);
	ss_vector_free(&cache->words);
}

static struct place place_of(const struct ss_stack_question *question)
{
	return (struct place){
		.pc = question->pc,
		.size = question->size,
		.truncated = question->truncated,
	};
}

static bool is_stack(const struct ss_stack_question *question, uint64_t value)
{
	uint64_t beyond = question->truncated ? BEYOND : 0;

	return value - question->address < question->size + beyond;
}

/* Bits of addresses, without those that sign a return address. */
#define ADDRESS_BITS ((UINT64_C(1) << 48) - 1)

static bool is_of_frame(const struct ss_trace_stack *stack, uint64_t value)
{
	for (size_t i = 0; i < stack->count; i++) {
		if (((stack->frames[i].pc ^ value) & ADDRESS_BITS) == 0)
			return true;
	}
	return false;
}

static struct ss_stack_word classify(const struct ss_trace_stack *stack,
				     const struct ss_stack_question *question,
				     uint64_t value)
{
	if (is_stack(question, value))
		return (struct ss_stack_word){ .kind = SS_WORD_STACK,
					       .value = value - question->address };
	if (is_of_frame(stack, value))
		return (struct ss_stack_word){ .kind = SS_WORD_CODE, .value = value };
	return (struct ss_stack_word){ .kind = SS_WORD_DATA };
}

static bool is_same(const struct ss_stack_question *question,
		    const struct ss_stack_word *word, uint64_t value)
{
	switch (word->kind) {
	case SS_WORD_CODE:
		return value == word->value;
	case SS_WORD_STACK:
		return value - question->address == word->value;
	default:
		return !is_stack(question, value);
	}
}

static bool matches(const struct ss_stack_cache *cache,
		    const struct ss_known_stack *known,
		    const struct ss_stack_question *question, const uint8_t *bytes)
{
	const struct ss_stack_word *words = &cache->words.items[known->first];
	size_t registers = (size_t)__builtin_popcountll(known->valid);
	uint64_t value;

	if (known->valid != question->regs.valid)
		return false;
	for (size_t i = 0; i < registers; i++) {
		if (!is_same(question, &words[i], question->regs.value[words[i].at]))
			return false;
	}
	for (size_t i = registers; i < known->count; i++) {
		memcpy(&value, bytes + words[i].at, sizeof(value));
		if (!is_same(question, &words[i], value))
			return false;
	}
	return true;
}

uint32_t ss_stack_cache_find(const struct ss_stack_cache *cache,
			     const struct ss_stack_question *question,
			     const uint8_t *bytes)
{
	const struct place place = place_of(question);
	uint32_t id = ss_idtable_find(&cache->places, &place, sizeof(place));
	uint32_t at =
		id == SS_ID_NONE || id >= cache->heads.count ? 0 : cache->heads.items[id];

	for (size_t i = 0; at && i < TRIES_MAX; i++) {
		const struct ss_known_stack *known = &cache->items.items[at - 1];
		if (matches(cache, known, question, bytes))
			return known->number;
		at = known->next;
	}
	return 0;
}

static bool add_word(struct ss_stack_cache *cache, struct ss_stack_word word, uint32_t at)
{
	struct ss_stack_word *slot = ss_vector_push(&cache->words);

	if (!slot)
		return false;
	*slot = word;
	slot->at = at;
	return true;
}

/* words: those of the stack, without registers. */
static void mark_root(struct ss_stack_word *words, size_t count, const uint8_t *bytes)
{
	static const uint64_t zero;
	uint32_t outermost = 0;

	for (size_t i = 0; i < count; i++) {
		if (words[i].kind == SS_WORD_CODE)
			outermost = SS_MAX(outermost, words[i].at);
	}
	for (size_t i = 0; i < count; i++) {
		if (words[i].kind == SS_WORD_DATA && words[i].at >= outermost &&
		    memcmp(bytes + words[i].at, &zero, sizeof(zero)) == 0)
			words[i] = (struct ss_stack_word){ .kind = SS_WORD_CODE,
							   .at = words[i].at };
	}
}

static bool add_words(struct ss_stack_cache *cache, const struct ss_trace_stack *stack,
		      const struct ss_stack_question *question, const uint8_t *bytes,
		      const uint32_t *offsets, size_t count)
{
	uint64_t value;

	for (unsigned i = 0; i < SS_REG_MAX; i++) {
		if (ss_regs_get(&question->regs, i, &value) &&
		    !add_word(cache, classify(stack, question, value), i))
			return false;
	}
	for (size_t i = 0; i < count; i++) {
		memcpy(&value, bytes + offsets[i], sizeof(value));
		if (!add_word(cache, classify(stack, question, value), offsets[i]))
			return false;
	}
	mark_root(cache->words.items + cache->words.count - count, count, bytes);
	return true;
}

/* The last stack of a place, or 0 if it is its first; SS_ID_NONE: no memory. */
static uint32_t *find_head(struct ss_stack_cache *cache,
			   const struct ss_stack_question *question)
{
	const struct place place = place_of(question);
	uint32_t id = ss_idtable_add(&cache->places, &place, sizeof(place), NULL);

	if (id == SS_ID_NONE)
		return NULL;
	while (cache->heads.count <= id) {
		if (!ss_vector_push(&cache->heads))
			return NULL;
	}
	return &cache->heads.items[id];
}

void ss_stack_cache_add(struct ss_stack_cache *cache, const struct ss_trace_stack *stack,
			const struct ss_stack_question *question, const uint8_t *bytes,
			const uint32_t *offsets, size_t count, uint32_t number)
{
	if (stack->end != SS_END_ROOT && stack->end != SS_END_LIMIT)
		return;
	if (cache->items.count >= ITEMS_MAX || cache->words.count >= WORDS_MAX)
		ss_stack_cache_deinit(cache);
	size_t first = cache->words.count;
	uint32_t *head = find_head(cache, question);
	struct ss_known_stack *known =
		head && add_words(cache, stack, question, bytes, offsets, count) ?
			ss_vector_push(&cache->items) :
			NULL;

	if (!known) {
		cache->words.count = first;
		return;
	}
	*known = (struct ss_known_stack){
		.next = *head,
		.number = number,
		.valid = question->regs.valid,
		.first = first,
		.count = cache->words.count - first,
	};
	*head = (uint32_t)cache->items.count;
}
