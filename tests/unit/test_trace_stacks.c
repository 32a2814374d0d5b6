/* What the child sends that unwinds the stacks of a trace, which anybody may have changed. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "data/recording_format.h"
#include "data/snapshot_fields.h"
#include "trace/stacks.h"

static const struct ss_trace_stack *add(struct ss_trace_stacks *stacks,
					struct ss_frame *frames, size_t count)
{
	const struct ss_stack stack = { .frames = frames,
					.count = count,
					.end = SS_END_ROOT };
	struct ss_buffer bytes = {};
	const struct ss_schema_writer writer = { .out = &bytes };

	ss_schema_write(&writer, &ss_stack_schema, &stack);
	assert_false(bytes.failed);
	uint32_t number =
		ss_trace_stacks_add(stacks, (const uint8_t *)bytes.bytes, bytes.size);
	ss_buffer_deinit(&bytes);
	assert_int_not_equal(number, 0);
	return &stacks->items.items[number - 1];
}

static void begin(struct ss_trace_stacks *stacks, struct ss_capture *capture)
{
	*stacks = (struct ss_trace_stacks){ .capture = capture,
					    .strings = ss_intern_new() };
	assert_non_null(capture);
	assert_non_null(stacks->strings);
}

/* A recording with one of them would be damaged from there on. */
TEST(test_frames_that_recordings_cannot_hold)
{
	struct ss_capture *capture = ss_capture_new();
	struct ss_trace_stacks stacks;
	struct ss_frame frames[] = {
		{ .pc = 0x1000, .module_index = -1, .source = SS_FROM_REGISTERS },
		{ .module_index = -1,
		  .kind = SS_FRAME_PYTHON,
		  .source = SS_FROM_RUNTIME },
		{ .pc = 0x2000, .module_index = -1, .source = SS_FROM_RUNTIME },
		{ .pc = 0x3000,
		  .module_index = -1,
		  .symbol = "stub",
		  .line = UINT32_MAX },
		{ .pc = 0x4000, .module_index = -1, .symbol = "stub" },
		{ .module_index = -1,
		  .kind = SS_FRAME_PYTHON,
		  .source = SS_FROM_RUNTIME,
		  .symbol = "main" },
	};

	begin(&stacks, capture);
	const struct ss_trace_stack *stack = add(&stacks, frames, SS_ARRAY_SIZE(frames));
	assert_int_equal(stack->end, SS_END_ROOT);
	assert_int_equal(stack->count, 3);
	assert_int_equal(stack->frames[0].pc, 0x1000);
	assert_int_equal(stack->frames[1].pc, 0x4000);
	assert_string_equal(stack->frames[2].symbol, "main");
	ss_trace_stacks_deinit(&stacks);
	ss_capture_free(capture);
}

TEST(test_long_texts)
{
	struct ss_capture *capture = ss_capture_new();
	char *text = calloc(1, SS_FORMAT_TEXT_MAX + 2);
	struct ss_trace_stacks stacks;
	struct ss_frame frame = { .pc = 0x1000, .module_index = -1, .symbol = text };

	assert_non_null(text);
	begin(&stacks, capture);
	memset(text, 'x', SS_FORMAT_TEXT_MAX);
	assert_string_equal(add(&stacks, &frame, 1)->frames[0].symbol, text);
	text[SS_FORMAT_TEXT_MAX] = 'x';
	const struct ss_trace_stack *stack = add(&stacks, &frame, 1);
	for (size_t i = 0; i < stack->count; i++)
		assert_null(stack->frames[i].symbol);
	ss_trace_stacks_deinit(&stacks);
	ss_capture_free(capture);
	free(text);
}
