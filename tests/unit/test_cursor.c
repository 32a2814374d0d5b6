/* Integers in untrusted bytes: DWARF 5, section 7.6 and figure C.1, C.2. */
#include "unit.h"

#include <string.h>

#include "base/bytes.h"
#include "base/search.h"

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ })
static struct ss_cursor cursor_of(const uint8_t *bytes, size_t size)
{
	return (struct ss_cursor){ .at = bytes, .end = bytes + size };
}

static void check_unsigned(const uint8_t *bytes, size_t size, uint64_t value, bool ok)
{
	struct ss_cursor cursor = cursor_of(bytes, size);

	assert_int_equal(ss_cursor_uleb128(&cursor), value);
	assert_int_equal(cursor.failed, !ok);
	assert_ptr_equal(cursor.at, cursor.end);
}

static void check_signed(const uint8_t *bytes, size_t size, int64_t value, bool ok)
{
	struct ss_cursor cursor = cursor_of(bytes, size);

	assert_int_equal(ss_cursor_sleb128(&cursor), value);
	assert_int_equal(cursor.failed, !ok);
	assert_ptr_equal(cursor.at, cursor.end);
}

#define UNSIGNED(value, ok, ...)                                                         \
	check_unsigned(BYTES(__VA_ARGS__), sizeof(BYTES(__VA_ARGS__)), value, ok)
#define SIGNED(value, ok, ...)                                                           \
	check_signed(BYTES(__VA_ARGS__), sizeof(BYTES(__VA_ARGS__)), value, ok)

TEST(test_uleb128)
{
	UNSIGNED(2, true, 2);
	UNSIGNED(127, true, 127);
	UNSIGNED(128, true, 0x80, 1);
	UNSIGNED(12857, true, 57 + 0x80, 100);
	UNSIGNED(UINT64_MAX, true, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		 0x01);
	/* Padded by an assembler. */
	UNSIGNED(5, true, 0x85, 0x80, 0x80, 0x00);
	UNSIGNED(1, true, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		 0x80, 0x00);
	/* 2^64 and more. */
	UNSIGNED(0, false, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02);
	UNSIGNED(0, false, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		 0x01);
	/* Truncated. */
	UNSIGNED(0, false, 0x80);
	UNSIGNED(0, false, 0xff, 0xff);
}

TEST(test_sleb128)
{
	SIGNED(2, true, 2);
	SIGNED(-2, true, 0x7e);
	SIGNED(127, true, 0xff, 0);
	SIGNED(-127, true, 0x81, 0x7f);
	SIGNED(-129, true, 0xff, 0x7e);
	SIGNED(INT64_MIN, true, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	       0x7f);
	SIGNED(INT64_MAX, true, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00);
	SIGNED(-2, true, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x7f);
	/* 2^63, which int64_t does not have. */
	SIGNED(0, false, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
	SIGNED(0, false, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00);
	SIGNED(0, false, 0xff);
}

TEST(test_fixed)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 0xf8, 9 };
	struct ss_cursor cursor = cursor_of(bytes, sizeof(bytes));

	assert_int_equal(ss_cursor_fixed(&cursor, 2), 0x0201);
	assert_int_equal(ss_cursor_byte(&cursor), 3);
	assert_int_equal(ss_cursor_left(&cursor), 6);
	cursor = cursor_of(bytes, sizeof(bytes));
	assert_int_equal(ss_cursor_fixed(&cursor, 8), UINT64_C(0xf807060504030201));
	assert_false(cursor.failed);
	assert_int_equal(ss_cursor_fixed(&cursor, 2), 0);
	assert_true(cursor.failed);
	assert_int_equal(ss_cursor_byte(&cursor), 0);
}

TEST(test_take)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct ss_cursor cursor = cursor_of(bytes, sizeof(bytes));

	assert_ptr_equal(ss_cursor_take(&cursor, 2), bytes);
	assert_ptr_equal(ss_cursor_take(&cursor, 0), bytes + 2);
	assert_null(ss_cursor_take(&cursor, SIZE_MAX));
	assert_true(cursor.failed);
	assert_null(ss_cursor_take(&cursor, 0));
}

TEST(test_index)
{
	static const uint8_t bytes[] = { 3, 3 };
	struct ss_cursor cursor = cursor_of(bytes, sizeof(bytes));

	assert_int_equal(ss_cursor_index(&cursor, 4), 3);
	assert_int_equal(ss_cursor_index(&cursor, 3), 0);
	assert_true(cursor.failed);
}

TEST(test_lower_bound)
{
	static const int numbers[] = { 1, 3, 3, 5 };

	assert_int_equal(ss_lower_bound(4, i, numbers[i] < 0), 0);
	assert_int_equal(ss_lower_bound(4, i, numbers[i] < 3), 1);
	assert_int_equal(ss_lower_bound(4, i, numbers[i] <= 3), 3);
	assert_int_equal(ss_lower_bound(4, i, numbers[i] < 9), 4);
	assert_int_equal(ss_lower_bound(0, i, numbers[i] < 9), 0);
}
