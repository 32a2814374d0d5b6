#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "base/procfs.h"

static struct ss_maps_entry entry;

/* Whether the first line that parses in text is there; in entry. */
static bool first(const char *text)
{
	const char *cursor = text;

	return ss_maps_next(&cursor, text + strlen(text), &entry);
}

TEST(test_fields)
{
	assert_true(
		first("7f0000001000-7f0000003000 r-xs 0001f000 fd:1c 4711       /a b\n"));
	assert_int_equal(entry.start, 0x7f0000001000);
	assert_int_equal(entry.end, 0x7f0000003000);
	assert_int_equal(entry.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(entry.offset, 0x1f000);
	assert_int_equal(entry.device, UINT64_C(0xfd) << 32 | 0x1c);
	assert_int_equal(entry.inode, 4711);
	assert_int_equal(entry.name_size, 4);
	assert_memory_equal(entry.name, "/a b", 4);
	assert_false(entry.deleted);
	assert_true(entry.shared);
	assert_true(first(
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]"));
	assert_int_equal(entry.end, 0xffffffffff601000);
	assert_false(entry.shared);
	assert_true(first("1000-2000 rw-p 00000000 00:00 0 \n"));
	assert_int_equal(entry.name_size, 0);
}

TEST(test_invalid_lines)
{
	const char *const bad[] = {
		"",
		"\n",
		"1000",
		"1000-2000",
		"1000-2000 r-x",
		"1000-2000 r-xp 0 00:00",
		"2000-1000 r-xp 0 00:00 0",
		"1000-1000 r-xp 0 00:00 0",
		"-2000 r-xp 0 00:00 0",
		"1000-g000 r-xp 0 00:00 0",
		"1000-2000 r-xp 0 0000 0 /a",
		"1000-10000000000000000 r-xp 0 00:00 0",
		"1000-2000 r-xp 0 00:00 18446744073709551616 /a",
		" 1000-2000 r-xp 0 00:00 0",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(first(bad[i]));
	assert_true(first("junk\n\n1000-2000 r-xp 0 00:00 18446744073709551615 /a"));
	assert_true(entry.inode == UINT64_MAX);
}

/* No byte beyond the end is looked at: every prefix, in a block of just its size. */
TEST(test_every_prefix)
{
	static const char line[] = "1000-2000 r-xp 00000000 00:00 12 /x (deleted)";

	for (size_t size = 0; size < sizeof(line); size++) {
		char *copy = malloc(size ? size : 1);
		assert_non_null(copy);
		memcpy(copy, line, size);
		const char *cursor = copy;
		bool parsed = ss_maps_next(&cursor, copy + size, &entry);
		assert_int_equal(parsed,
				 size >= sizeof("1000-2000 r-xp 00000000 00:00 1") - 1);
		assert_ptr_equal(cursor, copy + size);
		free(copy);
	}
}

TEST(test_deleted)
{
	assert_true(first("1000-2000 r-xp 0 00:00 5 /x (deleted)"));
	assert_true(entry.deleted);
	assert_int_equal(entry.name_size, 2);
	assert_true(first("1000-2000 r-xp 0 00:00 5 /x (deleted) (deleted)"));
	assert_int_equal(entry.name_size, strlen("/x (deleted)"));
	assert_true(first("1000-2000 r-xp 0 00:00 5  (deleted)"));
	assert_false(entry.deleted);
	assert_true(first("1000-2000 r-xp 0 00:00 0 [anon: (deleted)"));
	assert_false(entry.deleted);
}

TEST(test_unescape)
{
	char text[8];

	assert_int_equal(ss_maps_unescape("a\\012b", 6, text, sizeof(text)), 3);
	assert_string_equal(text, "a\nb");
	assert_int_equal(ss_maps_unescape("\\01", 3, text, sizeof(text)), 3);
	assert_string_equal(text, "\\01");
	assert_int_equal(ss_maps_unescape("123456789", 9, text, sizeof(text)), 7);
	assert_string_equal(text, "1234567");
	assert_int_equal(ss_maps_unescape("1", 1, text, 1), 0);
	assert_string_equal(text, "");
	assert_int_equal(ss_maps_unescape("1", 1, text, 0), 0);
}
