#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/profile.h"

static const struct ss_module libc = { .path = "/usr/lib/libc.so.6", .build_id = "9fa5" };
static const struct ss_module program = { .path = "/opt/shop/" };

static void assert_text(char *text, const char *expected)
{
	_cleanup_free_ char *owned = text;

	assert_non_null(owned);
	assert_string_equal(owned, expected);
}

TEST(test_places)
{
	const struct ss_frame in_libc = { .module = &libc,
					  .pc = 0x7f0000001010,
					  .offset = 0x1010,
					  .lookup_offset = 0x100f };
	const struct ss_frame in_program = { .module = &program, .offset = 0x20 };
	const struct ss_frame in_heap = { .pc = 0x5000,
					  .area = "[heap]",
					  .area_offset = 8 };
	const struct ss_frame in_file = { .pc = 0x5000, .area = "/tmp/code.bin" };
	const struct ss_frame nowhere = { .pc = 0x5000 };

	assert_text(ss_label_new(&in_libc, false), "libc.so.6+0x1010");
	assert_text(ss_label_new(&in_libc, true), "libc.so.6+0x100f [9fa5]");
	assert_text(ss_label_new(&in_program, false), "/opt/shop/+0x20");
	assert_text(ss_label_new(&in_program, true), "/opt/shop/+0x0 [no build-id]");
	assert_text(ss_label_new(&in_heap, false), "[heap]+0x8");
	assert_text(ss_label_new(&in_heap, true), "[heap]+0x8");
	assert_text(ss_label_new(&in_file, false), "[code.bin]+0x0");
	assert_text(ss_label_new(&nowhere, false), "[unmapped]+0x5000");
	assert_text(ss_label_new_module(&in_file), "[code.bin]");
	assert_text(ss_label_new_module(&in_libc), "libc.so.6");
}

TEST(test_raw_ignores_the_symbol)
{
	const struct ss_frame frame = { .module = &libc,
					.symbol = "poll",
					.offset = 0x1010,
					.lookup_offset = 0x100f };

	assert_text(ss_label_new(&frame, true), "libc.so.6+0x100f [9fa5]");
	assert_text(ss_label_new_place(&frame), "libc.so.6+0x1010");
}
