#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "runtime/v8/v8.h"

enum { MAX = 8 };

/* The layout of V8 13.6. */
static const struct ss_v8_layout layout = {
	.translation_operands = "643321343331003311101111111111111111101111121",
	.translation_begin = 14,
};

/* outer() calls mid() at 6, which calls leaf() at 3, which is left at 22; at 29, with
   instructions of the first one. */
static const uint8_t bytes[] = {
	0x0e, 0x00, 0x06, 0x06, 0x01, 0x0c, 0x04, 0x00, 0x02, 0x26, 0x06, 0x28,
	0x03, 0x28, 0x05, 0x26, 0x08, 0x26, 0x0a, 0x25, 0x25, 0x01, 0x06, 0x00,
	0x02, 0x01, 0x26, 0x0c, 0x26, 0x0e, 0x28, 0x05, 0x26, 0x08, 0x25, 0x25,
	0x01, 0x2c, 0x02, 0x04, 0x06, 0x26, 0x10, 0x26, 0x0e, 0x28, 0x05, 0x26,
	0x08, 0x27, 0x00, 0x26, 0x12, 0x26, 0x14, 0x26, 0x16, 0x26, 0x14, 0x26,
	0x0a, 0x25, 0x0e, 0x3e, 0x06, 0x06, 0x3c, 0x01, 0x3a, 0x02, 0x04, 0x06,
	0x31, 0x25, 0x25, 0x25, 0x25, 0x25, 0x25, 0x28, 0x05,
};

enum { SECOND = 62 };

static bool read_at(size_t size, uint32_t index, struct ss_v8_translated ret[MAX],
		    size_t *count)
{
	return ss_v8_translation_read(&layout, bytes, size, index, ret, MAX, count);
}

static void check(uint32_t index, int32_t last)
{
	static const struct ss_v8_translated expected[] = { { 2, 6 }, { 0, 3 } };
	struct ss_v8_translated frames[MAX];
	size_t count;

	assert_true(read_at(sizeof(bytes), index, frames, &count));
	for (size_t i = 0; i < count; i++)
		print_message("%d at %d\n", frames[i].function, frames[i].bytecode);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < SS_ARRAY_SIZE(expected); i++) {
		assert_int_equal(frames[i].function, expected[i].function);
		assert_int_equal(frames[i].bytecode, expected[i].bytecode);
	}
	assert_int_equal(frames[2].function, 1);
	assert_int_equal(frames[2].bytecode, last);
}

TEST(test_frames)
{
	check(0, 22);
}

TEST(test_earlier)
{
	check(SECOND, 29);
}

TEST(test_invalid)
{
	struct ss_v8_translated frames[MAX];
	size_t count;

	assert_false(read_at(sizeof(bytes), 1, frames, &count));
	assert_false(read_at(sizeof(bytes), sizeof(bytes), frames, &count));
	for (size_t size = 0; size < 41; size++)
		assert_false(read_at(size, 0, frames, &count));
	assert_false(ss_v8_translation_read(&layout, bytes, sizeof(bytes), 0, frames, 2,
					    &count));
	assert_int_equal(count, 2);
	/* A version without them */
	const struct ss_v8_layout none = {};
	assert_false(ss_v8_translation_read(&none, bytes, sizeof(bytes), 0, frames, MAX,
					    &count));
}

/* A builtin that continues a call (Array.prototype.map) is no function of its own. */
TEST(test_builtin)
{
	static const uint8_t builtin[] = { 14, 0, 6, 6,	 1, 10, 0, 0, 2,
					   2,  3, 0, 12, 1, 4,	2, 0, 2 };
	struct ss_v8_translated frames[MAX];
	size_t count;

	assert_true(ss_v8_translation_read(&layout, builtin, sizeof(builtin), 0, frames,
					   MAX, &count));
	assert_int_equal(count, 2);
	assert_int_equal(frames[0].bytecode, 5);
	assert_int_equal(frames[1].bytecode, 2);
	assert_int_equal(frames[1].function, 1);
}
