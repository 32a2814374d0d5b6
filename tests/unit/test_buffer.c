#include "unit.h"

#include <string.h>

#include "base/buffer.h"

TEST(test_text)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	ss_buffer_printf(&text, "%d and ", 7);
	ss_buffer_add(&text, "eight", 5);
	ss_buffer_add_byte(&text, '.');
	assert_string_equal(text.bytes, "7 and eight.");
	assert_int_equal(text.size, 12);
	ss_buffer_truncate(&text, 100);
	assert_int_equal(text.size, 12);
	ss_buffer_truncate(&text, 1);
	assert_string_equal(text.bytes, "7");
	ss_buffer_printf(&text, "%s", "");
	assert_int_equal(text.size, 1);
	assert_false(text.failed);
}

TEST(test_bytes)
{
	_cleanup_buffer_ struct ss_buffer bytes = {};

	for (unsigned i = 0; i < 100000; i++)
		ss_buffer_add_byte(&bytes, (uint8_t)i);
	assert_int_equal(bytes.size, 100000);
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal((uint8_t)bytes.bytes[i], (uint8_t)i);
	assert_int_equal(bytes.bytes[bytes.size], '\0');
}

TEST(test_empty)
{
	_cleanup_buffer_ struct ss_buffer buffer = {};

	ss_buffer_add(&buffer, NULL, 0);
	ss_buffer_truncate(&buffer, 0);
	ss_buffer_clear(&buffer);
	assert_null(buffer.bytes);
	ss_buffer_printf(&buffer, "%s", "");
	assert_string_equal(buffer.bytes, "");
	assert_int_equal(buffer.size, 0);
}

/* Without memory nothing changes, now or later, until the buffer is cleared. */
TEST(test_no_memory)
{
	_cleanup_buffer_ struct ss_buffer buffer = {};

	ss_buffer_add(&buffer, "kept", 4);
	assert_false(ss_buffer_reserve(&buffer, SIZE_MAX));
	assert_true(buffer.failed);
	ss_buffer_add(&buffer, "lost", 4);
	ss_buffer_printf(&buffer, "lost");
	assert_string_equal(buffer.bytes, "kept");
	size_t capacity = buffer.capacity;
	ss_buffer_clear(&buffer);
	assert_int_equal(buffer.size, 0);
	assert_int_equal(buffer.capacity, capacity);
	ss_buffer_add(&buffer, "new", 3);
	assert_string_equal(buffer.bytes, "new");
	ss_buffer_add(&buffer, "", SIZE_MAX);
	assert_true(buffer.failed);
	assert_string_equal(buffer.bytes, "new");
}
