#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8/v8.h"

/* The variables of a program, one word each, from address 0x1000 on. */
struct variables {
	struct ss_memory memory; /* first: see data/memory.h */
	uint32_t values[SS_V8_SYMBOLS];
	struct ss_v8_symbol symbols[SS_V8_SYMBOLS];
};

static size_t read_variables(const struct ss_memory *memory, uint64_t address,
			     void *bytes, size_t size)
{
	const struct variables *self = (const struct variables *)memory;

	return unit_copy(bytes, size, self->values, sizeof(self->values),
			 address - 0x1000);
}

static struct variables make_variables(uint32_t major, uint32_t minor)
{
	struct variables variables = { .memory.read = read_variables };

	for (size_t i = 0; i < SS_V8_SYMBOLS; i++) {
		variables.values[i] = (uint32_t)i;
		variables.symbols[i].address = 0x1000 + 4 * i;
	}
	variables.symbols[SS_V8_SIZES].address = 0;
	for (size_t i = SS_V8_CHECKED; i < SS_V8_SYMBOLS; i++)
		variables.symbols[i].address = 0;
	for (int i = 0; i < 4; i++) /* the fields of frames */
		variables.values[SS_V8_FIELDS + i] = (uint32_t)(-8 * (i + 1));
	variables.values[SS_V8_MAJOR] = major;
	variables.values[SS_V8_MINOR] = minor;
	variables.values[SS_V8_TAGGED_SIZE] = 8;
	variables.values[SS_V8_SMI_SHIFT] = 31;
	return variables;
}

static const char *read_layout(const struct variables *variables,
			       struct ss_v8_layout *ret)
{
	const char *why = "?";

	*ret = (struct ss_v8_layout){};
	if (!ss_v8_version_read(&variables->memory, variables->symbols, ret))
		return "no version";
	bool found = ss_v8_layout_read(&variables->memory, variables->symbols, ret, &why);
	assert_true(found == !why);
	return why;
}

TEST(test_layout)
{
	struct variables variables = make_variables(11, 3);
	struct ss_v8_layout layout;

	assert_null(read_layout(&variables, &layout));
	assert_int_equal(layout.major, 11);
	assert_int_equal(layout.frame_context, -8);
	assert_int_equal(layout.frame_offset, -32);
	assert_int_equal(layout.function_shared, SS_V8_FIELDS + 4);
	assert_int_equal(layout.scope_first, SS_V8_CHECKED - 1);
	assert_int_equal(layout.stream_header, 16);
	assert_int_equal(layout.bytecodes, 0);
}

TEST(test_unknown)
{
	struct variables variables = make_variables(13, 7);
	struct ss_v8_layout layout;

	assert_string_equal(read_layout(&variables, &layout),
			    "the layout of this version is not known");
	variables = make_variables(11, 3);
	variables.values[SS_V8_TAGGED_SIZE] = 4;
	assert_string_equal(read_layout(&variables, &layout),
			    "it has compressed pointers");
	variables = make_variables(11, 3);
	variables.symbols[SS_V8_CHECKED - 1].address = 0;
	assert_non_null(strstr(read_layout(&variables, &layout), "does not export"));
	variables = make_variables(11, 3);
	variables.values[SS_V8_FIELDS + 4] = 1 << 20;
	assert_non_null(strstr(read_layout(&variables, &layout), "does not export"));
}

/* A program whose layout is not that of its version is not read. */
TEST(test_agreement)
{
	static const uint32_t values[] = { 24, 24, 24, 40, 40, 8, 8, 52,
					   56, 40, 32, 3,  7,  7, 8, 195 };
	struct variables variables = make_variables(13, 6);
	struct ss_v8_layout layout;

	assert_int_equal(SS_ARRAY_SIZE(values), SS_V8_SYMBOLS - SS_V8_CHECKED);
	for (size_t i = 0; i < SS_ARRAY_SIZE(values); i++) {
		variables.symbols[SS_V8_CHECKED + i].address =
			0x1000 + 4 * (SS_V8_CHECKED + i);
		variables.values[SS_V8_CHECKED + i] = values[i];
	}
	assert_null(read_layout(&variables, &layout));
	for (size_t i = 0; i < SS_ARRAY_SIZE(values); i++) {
		variables.values[SS_V8_CHECKED + i]++;
		assert_non_null(strstr(read_layout(&variables, &layout), "differs"));
		variables.values[SS_V8_CHECKED + i]--;
	}
}

/* Without a table in the program. */
TEST(test_sizes)
{
	/* CallUndefinedReceiver1: three operands; the last bytecode is DebugBreak. */
	static const struct {
		uint32_t major, minor, count, call;
	} versions[] = { { 13, 6, 208, 0x69 },
			 { 14, 1, 212, 0x6b },
			 { 14, 6, 212, 0x6b } };
	struct ss_v8_layout layout;

	for (size_t i = 0; i < SS_ARRAY_SIZE(versions); i++) {
		struct variables variables =
			make_variables(versions[i].major, versions[i].minor);
		assert_null(read_layout(&variables, &layout));
		assert_int_equal(layout.bytecodes, versions[i].count);
		assert_int_equal(layout.sizes[0][versions[i].call], 4);
		assert_int_equal(layout.sizes[1][versions[i].call], 7);
		assert_int_equal(layout.sizes[2][versions[i].call], 13);
		for (uint32_t k = 0; k < layout.bytecodes; k++)
			assert_in_range(layout.sizes[0][k], 1, 7);
	}
}

/* Only some bytes below the frame pointer are read of a frame. */
TEST(test_frame_fields)
{
	static const int32_t wrong[] = { -48, -41, -7, 0, 8, 4000, -4000 };
	struct ss_v8_layout layout;

	for (size_t i = 0; i < 4 * SS_ARRAY_SIZE(wrong); i++) {
		struct variables variables = make_variables(11, 3);
		variables.values[SS_V8_FIELDS + i % 4] = (uint32_t)wrong[i / 4];
		const char *why = read_layout(&variables, &layout);
		print_message("field %zu: %d: %s\n", i % 4, wrong[i / 4],
			      why ? why : "accepted");
		assert_non_null(why);
		assert_non_null(strstr(why, "not valid"));
	}
	struct variables variables = make_variables(11, 3);
	variables.values[SS_V8_FIELDS + 3] = (uint32_t)-SS_V8_FRAME_BYTES;
	assert_null(read_layout(&variables, &layout));
}

/* Offsets -1, 2, 3 with the positions 4, 10, 7. An expression has the complement of its
   offset. */
TEST(test_positions)
{
	static const uint8_t table[] = { 0, 8, 6, 12, 3, 5 };
	const struct ss_v8_layout layout = {};
	uint64_t position = 0;

	assert_true(ss_v8_position_find(&layout, table, sizeof(table), -1, &position));
	assert_int_equal(position, 4);
	assert_true(ss_v8_position_find(&layout, table, sizeof(table), 1, &position));
	assert_int_equal(position, 4);
	assert_true(ss_v8_position_find(&layout, table, sizeof(table), 2, &position));
	assert_int_equal(position, 10);
	assert_true(ss_v8_position_find(&layout, table, sizeof(table), 1000, &position));
	assert_int_equal(position, 7);
	assert_false(ss_v8_position_find(&layout, table, sizeof(table), -2, &position));
	assert_false(
		ss_v8_position_find(&layout, table, sizeof(table) - 1, 1000, &position));
	assert_false(ss_v8_position_find(&layout, table, 0, 0, &position));
}

/* The same, with two bits in place of a complement. */
TEST(test_position_flags)
{
	static const uint8_t table[] = { 2, 8, 3 << 2 | 3, 12, 1 << 2 | 2, 5 };
	const struct ss_v8_layout layout = { .position_flags = 2 };
	uint64_t position = 0;

	assert_true(ss_v8_position_find(&layout, table, sizeof(table), 1, &position));
	assert_int_equal(position, 4);
	assert_true(ss_v8_position_find(&layout, table, sizeof(table), 2, &position));
	assert_int_equal(position, 10);
	assert_true(ss_v8_position_find(&layout, table, sizeof(table), 3, &position));
	assert_int_equal(position, 7);
}

TEST(test_encoding)
{
	assert_int_equal(ss_v8_position_script(5 << 1), 5);
	assert_int_equal(ss_v8_position_script(5 << 1 | 1), 0); /* of another language */
	assert_int_equal(ss_v8_position_inlined(UINT64_C(3) << 31 | 5 << 1), 3);
}
