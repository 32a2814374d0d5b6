/*
 * Answers of the child that unwinds for a recording, which the recorder reads with its privileges.
 * Structs are those of the build, so an input says how to change an answer that is made here:
 * changes of six bytes each, an offset of two bytes and what replaces the four bytes there. An
 * offset behind the end is the size that is left.
 */
#include "sample/unwinder.c" /* its reader is not public */
#include "fuzz.h"
#include "data/gather.h"

enum { MODULES = 2, THREADS = 2, FRAMES = 3, CALLS = 2 };

static struct ss_capture *make_capture(void)
{
	struct ss_capture *capture = ss_capture_new();

	FUZZ_REQUIRE(capture);
	capture->arch = ss_arch_find_name("x86_64");
	for (uint64_t i = 0; i < MODULES; i++) {
		struct ss_module_impl **slot = ss_vector_push(&capture->modules);
		FUZZ_REQUIRE(slot);
		*slot = ss_module_new("module", i << 20, (i + 1) << 20);
		FUZZ_REQUIRE(*slot);
	}
	for (int i = 0; i < THREADS; i++) {
		struct ss_capture_thread *thread = ss_vector_push(&capture->threads);
		FUZZ_REQUIRE(thread);
		*thread = (struct ss_capture_thread){ .tid = i + 1, .state = 'S' };
	}
	return capture;
}

/* One of two modules is described. */
static void make_unwinder(struct ss_unwinder *unwinder, const struct ss_capture *capture)
{
	for (size_t i = 0; i < MODULES; i++) {
		struct ss_unwinder_module *module = ss_vector_push(&unwinder->modules);
		FUZZ_REQUIRE(module);
		*module = (struct ss_unwinder_module){
			.module = ss_module_ref(capture->modules.items[i])
		};
	}
	uint32_t *pending = ss_vector_push(&unwinder->pending);
	FUZZ_REQUIRE(pending);
	*pending = 1;
}

static void make_answer(struct ss_buffer *out)
{
	static const struct ss_unwound_frame frames[FRAMES] = {
		{ .pc = 0x1000, .module = 0 },
		{ .pc = 1,
		  .module = -1,
		  .flags = SS_FROM_RUNTIME << SS_FRAME_SOURCE_SHIFT },
		{ .pc = 0x110000, .module = 1, .flags = SS_FRAME_CALL },
	};
	struct ss_unwound unwound = {};
	struct ss_unwound_module *module = ss_vector_push(&unwound.modules);
	struct ss_unwound_stack *stack = ss_vector_push(&unwound.stacks);
	struct ss_gather_plan *plan = ss_vector_push(&unwound.plans);

	FUZZ_REQUIRE(module && stack && plan &&
		     ss_vector_reserve(&unwound.frames, FRAMES));
	*module = (struct ss_unwound_module){ .id = 1,
					      .build_id_size = 20,
					      .has_hash = 1,
					      .problem = ss_unwound_add_text(
						      &unwound, "a problem", SIZE_MAX) };
	*stack = (struct ss_unwound_stack){ .count = FRAMES, .end = SS_END_ROOT };
	*plan = (struct ss_gather_plan){ .size = sizeof(*plan) };
	memcpy(unwound.frames.items, frames, sizeof(frames));
	unwound.frames.count = FRAMES;
	for (int i = 0; i < THREADS; i++) {
		struct ss_unwound_thread *thread = ss_vector_push(&unwound.threads);
		FUZZ_REQUIRE(thread);
		thread->reason = ss_unwound_add_text(&unwound, "it", SIZE_MAX);
		thread->function = ss_unwound_add_text(&unwound, "wait", SIZE_MAX);
	}
	for (int i = 0; i < CALLS; i++) {
		struct ss_unwound_call *call = ss_vector_push(&unwound.calls);
		FUZZ_REQUIRE(call);
		call->kind = SS_FRAME_PYTHON;
		call->line = 3;
		call->function = ss_unwound_add_text(&unwound, "f", SIZE_MAX);
		call->file = ss_unwound_add_text(&unwound, "a", SIZE_MAX);
	}
	FUZZ_REQUIRE(!unwound.no_memory);
	ss_unwound_encode(&unwound, out);
	FUZZ_REQUIRE(!out->failed);
	ss_unwound_deinit(&unwound);
}

/* Returns the size that is left. */
static size_t change(uint8_t *bytes, size_t bytes_size, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 6 <= size; at += 6) {
		size_t offset = data[at] | (size_t)data[at + 1] << 8;
		size_t left = data[at + 2] | (size_t)data[at + 3] << 8;
		if (offset + 4 <= bytes_size)
			memcpy(bytes + offset, data + at + 2, 4);
		else
			bytes_size = SS_MIN(left, bytes_size);
	}
	return bytes_size;
}

static void touch(const char *text)
{
	if (text)
		fuzz_touch(text, strlen(text));
}

static void touch_text(const struct ss_unwound *unwound, uint32_t offset)
{
	touch(ss_unwound_text(unwound, offset));
}

static void check(const struct ss_unwound *unwound)
{
	FUZZ_REQUIRE(unwound->threads.count == THREADS);
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_unwound_thread *thread = &unwound->threads.items[i];
		FUZZ_REQUIRE(thread->stack < unwound->stacks.count);
		touch_text(unwound, thread->reason);
		touch_text(unwound, thread->function);
	}
	for (size_t i = 0; i < unwound->stacks.count; i++) {
		const struct ss_unwound_stack *stack = &unwound->stacks.items[i];
		for (size_t k = 0; k < stack->count; k++) {
			const struct ss_unwound_frame *frame =
				&ss_unwound_frames(unwound, stack)[k];
			const bool call = ss_frame_flags_source(frame->flags) ==
					  SS_FROM_RUNTIME;
			FUZZ_REQUIRE(frame->module < MODULES &&
				     (!call || frame->pc < unwound->calls.count));
		}
	}
	for (size_t i = 0; i < unwound->calls.count; i++) {
		touch_text(unwound, unwound->calls.items[i].function);
		touch_text(unwound, unwound->calls.items[i].file);
	}
	if (unwound->plans.count) {
		struct ss_gather *gather = NULL;
		struct ss_gather_plan plan = unwound->plans.items[0];
		/* Reserving more would take longer than everything else. */
		plan.max_nodes %= 1 << 12;
		plan.max_bytes %= 1 << 16;
		ss_error_free(ss_gather_new(&plan, false, &gather));
		ss_gather_free(gather);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buffer_ struct ss_buffer answer = {};
	struct ss_capture *capture = make_capture();
	struct ss_unwinder unwinder = {};

	make_unwinder(&unwinder, capture);
	make_answer(&answer);
	uint8_t *bytes = malloc(answer.size);
	FUZZ_REQUIRE(bytes);
	memcpy(bytes, answer.bytes, answer.size);
	size_t left = change(bytes, answer.size, data, size);
	struct ss_cursor cursor = { .at = bytes, .end = bytes + left };
	bool valid = read_answer(&unwinder, &cursor, capture);
	if (valid)
		check(&unwinder.unwound);
	if (size == 0)
		FUZZ_REQUIRE(valid);
	touch(unwinder.modules.items[1].problem);
	touch(unwinder.modules.items[1].build_id);
	ss_unwinder_deinit(&unwinder);
	free(bytes);
	ss_capture_free(capture);
	return 0;
}
