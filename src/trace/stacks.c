#include "trace/stacks.h"

#include <string.h>

#include "base/cursor.h"
#include "base/error.h"
#include "sandbox/sandbox.h"
#include "stacksnap/trace.h"

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

static const char *read_text(struct ss_trace_stacks *stacks, struct ss_cursor *at,
			     size_t size)
{
	const uint8_t *bytes =
		size && size <= SS_STACK_TEXT_MAX ? ss_cursor_take(at, size) : NULL;
	char text[SS_STACK_TEXT_MAX + 1];

	if (!bytes)
		return NULL;
	memcpy(text, bytes, size);
	text[size] = '\0';
	return ss_intern_string(stacks->strings, text);
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

/* False: invalid. */
static bool read_frame(struct ss_trace_stacks *stacks, struct ss_cursor *at,
		       struct ss_trace_frame *ret)
{
	struct ss_stack_frame frame;
	const uint8_t *bytes = ss_cursor_take(at, sizeof(frame));

	if (!bytes)
		return false;
	memcpy(&frame, bytes, sizeof(frame));
	*ret = (struct ss_trace_frame){
		.pc = frame.pc,
		.offset = frame.offset,
		.module = keep_module(stacks, frame.module),
		.inlined = frame.inlined,
		.symbol = read_text(stacks, at, frame.symbol_size),
		.line = frame.line,
		.source = (enum ss_frame_source)frame.source,
		.caller = frame.caller,
		.signal_frame = frame.signal_frame,
	};
	ret->file = read_text(stacks, at, frame.file_size);
	return !at->failed;
}

/* The number of the stack in an answer, or 0. */
static uint32_t add(struct ss_trace_stacks *stacks, const uint8_t *bytes, size_t size)
{
	struct ss_cursor at = { .at = bytes, .end = bytes + size };
	struct ss_stack_answer head;
	bool added = false;

	if (size < sizeof(head))
		return 0;
	uint32_t id = ss_idtable_add(&stacks->ids, bytes, size, &added);
	if (id == SS_ID_NONE || !added)
		return id == SS_ID_NONE || id >= stacks->items.count ? 0 : id + 1;
	memcpy(&head, ss_cursor_take(&at, sizeof(head)), sizeof(head));
	if (head.frame_count > SS_STACK_FRAMES_MAX)
		head.frame_count = 0;
	struct ss_trace_stack *stack = ss_vector_push(&stacks->items);
	struct ss_trace_frame *frames =
		calloc(head.frame_count + (size_t)1, sizeof(*frames));
	if (!stack || !frames) {
		free(frames);
		return 0;
	}
	*stack =
		(struct ss_trace_stack){ .frames = frames, .end = (enum ss_end)head.end };
	for (size_t i = 0; i < head.frame_count && read_frame(stacks, &at, &frames[i]);
	     i++)
		stack->count++;
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
	uint32_t number = add(stacks, at.at, (size_t)(at.end - at.at));
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
