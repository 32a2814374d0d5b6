#include "trace/stacks.h"

#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/search.h"
#include "data/recording_format.h"
#include "data/snapshot_fields.h"
#include "sandbox/sandbox.h"
#include "stacksnap/trace.h"

void ss_code_map_deinit(struct ss_code_map *map)
{
	for (size_t i = 0; i < map->modules.count; i++)
		ss_module_unref(map->modules.items[i]);
	ss_vector_free(&map->modules);
	ss_vector_free(&map->ranges);
}

/* The next run of executable areas without gaps, from area *at on. False: there is none. */
static bool next_range(const struct ss_capture *capture, size_t *at,
		       struct ss_code_range *ret)
{
	const struct ss_area *areas = capture->areas.items;
	size_t count = capture->areas.count;

	while (*at < count && !(areas[*at].prot & PROT_EXEC))
		(*at)++;
	if (*at == count)
		return false;
	*ret = (struct ss_code_range){ areas[*at].start, areas[*at].end };
	for ((*at)++;
	     *at < count && (areas[*at].prot & PROT_EXEC) && areas[*at].start == ret->end;
	     (*at)++)
		ret->end = areas[*at].end;
	return true;
}

static bool add_all(struct ss_code_map *map, const struct ss_capture *capture)
{
	struct ss_code_range range;

	for (size_t at = 0; next_range(capture, &at, &range);) {
		struct ss_code_range *slot = ss_vector_push(&map->ranges);
		if (!slot)
			return false;
		*slot = range;
	}
	for (size_t i = 0; i < capture->modules.count; i++) {
		struct ss_module_impl **slot = ss_vector_push(&map->modules);
		if (!slot)
			return false;
		*slot = ss_module_ref(capture->modules.items[i]);
	}
	return true;
}

bool ss_code_map_set(struct ss_code_map *map, const struct ss_capture *capture)
{
	ss_code_map_deinit(map);
	if (add_all(map, capture))
		return true;
	ss_code_map_deinit(map);
	return false;
}

bool ss_code_map_is_of(const struct ss_code_map *map, const struct ss_capture *capture)
{
	struct ss_code_range range;
	size_t at = 0;

	/* Modules that remain mapped keep their objects (sample/address_space.h). */
	if (map->modules.count != capture->modules.count)
		return false;
	for (size_t i = 0; i < map->modules.count; i++) {
		if (map->modules.items[i] != capture->modules.items[i])
			return false;
	}
	for (size_t i = 0; i < map->ranges.count; i++) {
		if (!next_range(capture, &at, &range) ||
		    range.start != map->ranges.items[i].start ||
		    range.end != map->ranges.items[i].end)
			return false;
	}
	return !next_range(capture, &at, &range);
}

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
	return ss_any(stack->count, i,
		      ((stack->frames[i].pc ^ value) & ADDRESS_BITS) == 0);
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

enum { TIMEOUT_MS = 20000, FAILURES_MAX = 3 };

static const uint64_t memory_limit = (uint64_t)4 << 30;

void ss_trace_stacks_deinit(struct ss_trace_stacks *stacks)
{
	ss_worker_free(stacks->worker);
	ss_stack_server_free(stacks->server);
	ss_code_map_deinit(&stacks->code);
	ss_stack_cache_deinit(&stacks->cache);
	ss_idtable_deinit(&stacks->ids);
	ss_buffer_deinit(&stacks->request);
	ss_buffer_deinit(&stacks->key);
	for (size_t i = 0; i < stacks->items.count; i++)
		free(ss_drop_const(stacks->items.items[i].frames));
	for (size_t i = 0; i < stacks->modules.count; i++)
		ss_module_unref(stacks->modules.items[i]);
	ss_vector_free(&stacks->items);
	ss_vector_free(&stacks->modules);
	ss_intern_free(stacks->strings);
	*stacks = (struct ss_trace_stacks){};
}

struct ss_error *ss_trace_stacks_begin(struct ss_trace_stacks *stacks,
				       struct ss_capture *capture,
				       const struct ss_target *target,
				       const struct ss_trace_options *options)
{
	stacks->capture = capture;
	if (stacks->worker && ss_code_map_is_of(&stacks->code, capture)) {
		ss_stack_server_set_capture(stacks->server, capture);
		return NULL;
	}
	ss_worker_free(take_ptr(stacks->worker));
	ss_stack_server_free(take_ptr(stacks->server));
	ss_stack_cache_deinit(&stacks->cache);
	if (!stacks->strings)
		stacks->strings = ss_intern_new();
	if (!ss_code_map_set(&stacks->code, capture))
		return ss_error_no_memory();
	stacks->server = ss_stack_server_new(capture, options->max_frames, options->flags,
					     options->debug_dir);
	if (!stacks->server || !stacks->strings)
		return ss_error_no_memory();
	struct ss_worker_options worker = {
		.serve = ss_stack_server_serve,
		.data = stacks->server,
		.timeout_ms = TIMEOUT_MS,
		.confinement = { .memory = memory_limit, .receives = 1 }, /* requests */
	};
	struct ss_error *unknown =
		ss_target_owner(target, &worker.confinement.uid, &worker.confinement.gid);
	worker.confinement.change_ids = !unknown;
	ss_error_free(unknown);
	struct ss_error *error = ss_worker_new(&worker, &stacks->worker);
	return error ? error : ss_worker_start(stacks->worker);
}

static const char *read_text(void *data, const uint8_t *bytes, size_t size)
{
	const struct ss_trace_stacks *stacks = data;

	return size <= SS_FORMAT_TEXT_MAX ?
		       ss_intern_bytes(stacks->strings, (const char *)bytes, size) :
		       NULL;
}

static void *allocate(void *data, size_t size, bool owned)
{
	(void)data;
	(void)owned; /* there are only frames */
	return calloc(1, size);
}

static uint64_t count_modules(void *data, unsigned table)
{
	const struct ss_trace_stacks *stacks = data;

	(void)table; /* frames have indexes of no other */
	return stacks->capture->modules.count;
}

/* The module stays as long as the stack. NULL: none, or no memory. */
static const struct ss_module *keep_module(struct ss_trace_stacks *stacks, int32_t index)
{
	if (index < 0 || (size_t)index >= stacks->capture->modules.count)
		return NULL;
	struct ss_module_impl *module = stacks->capture->modules.items[index];
	for (size_t i = 0; i < stacks->modules.count; i++) {
		if (stacks->modules.items[i] == module)
			return &module->pub;
	}
	struct ss_module_impl **slot = ss_vector_push(&stacks->modules);
	if (!slot)
		return NULL;
	*slot = ss_module_ref(module);
	return &module->pub;
}

uint32_t ss_trace_stacks_add(struct ss_trace_stacks *stacks, const uint8_t *bytes,
			     size_t size)
{
	struct ss_schema_reader reader = {
		.cursor = { .at = bytes, .end = bytes + size },
		.list_max = SS_STACK_FRAMES_MAX,
		.text = read_text,
		.allocate = allocate,
		.limit = count_modules,
		.data = stacks,
	};
	struct ss_stack read = {};
	bool added = false;

	uint32_t id = ss_idtable_add(&stacks->ids, bytes, size, &added);
	if (id == SS_ID_NONE || !added)
		return id == SS_ID_NONE || id >= stacks->items.count ? 0 : id + 1;
	struct ss_trace_stack *stack = ss_vector_push(&stacks->items);
	if (!stack)
		return 0;
	ss_schema_read(&reader, &ss_stack_schema, &read);
	size_t count = 0;
	for (size_t i = 0; i < read.count; i++) {
		struct ss_frame *frame = &read.frames[count];
		if (!ss_frame_is_valid(&read.frames[i]))
			continue;
		*frame = read.frames[i];
		frame->module = keep_module(stacks, frame->module_index);
		frame->module_index = -1;
		count++;
	}
	*stack = (struct ss_trace_stack){ .frames = read.frames,
					  .count = count,
					  .end = read.end };
	return id + 1;
}

/* The answer after its words, which are checked. */
static uint32_t read_answer(struct ss_trace_stacks *stacks,
			    const struct ss_stack_question *question,
			    const uint8_t *bytes, const uint8_t *answer, size_t size)
{
	struct ss_cursor at = { .at = answer, .end = answer + size };
	uint32_t offsets[SS_STACK_WORDS_MAX];
	struct ss_stack_words words;
	const uint8_t *head = ss_cursor_take(&at, sizeof(words));

	if (!head)
		return 0;
	memcpy(&words, head, sizeof(words));
	size_t count = words.word_count;
	const uint8_t *from = count <= SS_STACK_WORDS_MAX ?
				      ss_cursor_take(&at, count * sizeof(*offsets)) :
				      NULL;
	if (!from)
		return 0;
	memcpy(offsets, from, count * sizeof(*offsets));
	for (size_t i = 0; i < count; i++) {
		if ((uint64_t)offsets[i] + sizeof(uint64_t) > question->size)
			return 0;
	}
	uint32_t number = ss_trace_stacks_add(stacks, at.at, (size_t)(at.end - at.at));
	if (number && words.complete)
		ss_stack_cache_add(&stacks->cache, &stacks->items.items[number - 1],
				   question, bytes, offsets, count, number);
	return number;
}

uint32_t ss_trace_stacks_find(struct ss_trace_stacks *stacks, const struct ss_regs *regs,
			      const void *bytes, size_t size, bool truncated)
{
	const struct ss_stack_question question = {
		.regs = *regs,
		.pc = ss_regs_pc(stacks->capture->arch, regs),
		.address = ss_regs_sp(stacks->capture->arch, regs),
		.size = (uint32_t)size,
		.truncated = truncated,
	};
	struct ss_sandbox_failure failure;
	const uint8_t *answer = NULL;
	size_t answer_size = 0;
	uint32_t known = ss_stack_cache_find(&stacks->cache, &question, bytes);

	if (known)
		return known;
	/* Without memory there is no worker. */
	if (!stacks->worker || stacks->failures >= FAILURES_MAX)
		return 0;
	if (!ss_worker_is_running(stacks->worker)) {
		struct ss_error *error = ss_worker_start(stacks->worker);
		bool failed = error;
		ss_error_free(error);
		if (failed)
			return 0;
	}
	ss_buffer_clear(&stacks->request);
	ss_buffer_add(&stacks->request, &question, sizeof(question));
	ss_buffer_add(&stacks->request, bytes, size);
	if (stacks->request.failed)
		return 0;
	const struct ss_worker_request request = {
		.bytes = (const uint8_t *)stacks->request.bytes,
		.size = stacks->request.size,
	};
	if (!ss_worker_call(stacks->worker, &request, NULL, &answer, &answer_size,
			    &failure)) {
		stacks->failures++;
		return 0;
	}
	return read_answer(stacks, &question, bytes, answer, answer_size);
}
