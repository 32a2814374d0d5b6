#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names.h"

enum { CODE = 0, BARE = 3 };

static const struct ss_lookup_sources sources = {
	.build_id = { 1, 2, 3 },
	.build_id_size = 3,
	.files = { { 5, 6, 7, 8, 9 }, { 15, 16, 17, 18, 19 } },
};

static const struct ss_name unknown = {};

static struct ss_name known(void)
{
	return (struct ss_name){
		.symbol = "outer",
		.start = 0x1000,
		.line = { "a.c", 5, 2 },
		.inline_count = 2,
		.inlines = { { "inner", { "a.c", 9, 0 } }, { NULL, { NULL, 13, 1 } } },
	};
}

/* The bytes of two lookups. */
static void fill(struct ss_buffer *ret)
{
	_cleanup_(ss_lookups_cleanup) struct ss_lookups *lookups = ss_lookups_new();
	struct ss_name name = known();

	assert_non_null(lookups);
	ss_lookups_add(lookups, 0x1010, CODE, &name);
	ss_lookups_add(lookups, 0x1010, BARE, &unknown);
	assert_true(ss_lookups_write(lookups, &sources, ret));
}

TEST(test_kept)
{
	_cleanup_(ss_lookups_cleanup) struct ss_lookups *lookups = ss_lookups_new();
	_cleanup_buffer_ struct ss_buffer bytes = {};
	struct ss_name name = { .symbol = "wrong" };

	assert_non_null(lookups);
	fill(&bytes);
	assert_true(ss_lookups_read(lookups, bytes.bytes, bytes.size, &sources));
	assert_false(ss_lookups_changed(lookups));
	assert_true(ss_lookups_find(lookups, 0x1010, BARE, &name));
	assert_null(name.symbol);
	assert_int_equal(name.inline_count, 0);
	assert_true(ss_lookups_find(lookups, 0x1010, CODE, &name));
	assert_string_equal(name.symbol, "outer");
	assert_true(name.start == 0x1000);
	assert_string_equal(name.line.file, "a.c");
	assert_int_equal(name.line.line, 5);
	assert_int_equal(name.line.column, 2);
	assert_int_equal(name.inline_count, 2);
	assert_string_equal(name.inlines[0].name, "inner");
	assert_int_equal(name.inlines[0].call.line, 9);
	assert_null(name.inlines[1].name);
	assert_null(name.inlines[1].call.file);
	assert_int_equal(name.inlines[1].call.column, 1);
	assert_false(ss_lookups_find(lookups, 0x1011, CODE, &name));
	ss_lookups_add(lookups, 0x1011, CODE, &name);
	assert_true(ss_lookups_changed(lookups));
}

static bool is_read(const void *bytes, size_t size)
{
	_cleanup_(ss_lookups_cleanup) struct ss_lookups *lookups = ss_lookups_new();
	/* The sanitizer sees reads beyond the end. */
	_cleanup_free_ void *copy = malloc(size + 1);
	struct ss_name name;

	assert_non_null(lookups);
	assert_non_null(copy);
	memcpy(copy, bytes, size);
	if (ss_lookups_read(lookups, copy, size, &sources))
		return true;
	/* Nothing is left of what was refused. */
	assert_false(ss_lookups_find(lookups, 0x1010, CODE, &name));
	return false;
}

TEST(test_damage)
{
	_cleanup_buffer_ struct ss_buffer bytes = {};

	fill(&bytes);
	assert_true(is_read(bytes.bytes, bytes.size));
	for (size_t i = 0; i < bytes.size; i++) {
		assert_false(is_read(bytes.bytes, i)); /* cut off there */
		for (int bit = 0; bit < 8; bit++) {
			bytes.bytes[i] = (char)(bytes.bytes[i] ^ 1 << bit);
			assert_false(is_read(bytes.bytes, bytes.size));
			bytes.bytes[i] = (char)(bytes.bytes[i] ^ 1 << bit);
		}
	}
	ss_buffer_add_byte(&bytes, 0);
	assert_false(is_read(bytes.bytes, bytes.size));
}

/* Another build, or another debug file. */
TEST(test_other_sources)
{
	_cleanup_buffer_ struct ss_buffer bytes = {};
	struct ss_lookup_sources others[4] = { sources, sources, sources, sources };

	others[0].build_id[2] = 4;
	others[1].files[0].changed_ns++;
	memset(&others[2].files[1], 0, sizeof(others[2].files[1]));
	others[3].files[2].inode = 1;
	fill(&bytes);
	for (size_t i = 0; i < SS_ARRAY_SIZE(others); i++) {
		_cleanup_(ss_lookups_cleanup) struct ss_lookups *lookups =
			ss_lookups_new();
		assert_non_null(lookups);
		assert_false(
			ss_lookups_read(lookups, bytes.bytes, bytes.size, &others[i]));
	}
}

/* If there are too many, only those of this run are kept; if even these are too many,
   none. */
TEST(test_limit)
{
	enum { LENGTH = 4096, FIT = SS_LOOKUPS_SIZE_MAX / (LENGTH + 32) };
	_cleanup_(ss_lookups_cleanup) struct ss_lookups *lookups = ss_lookups_new();
	_cleanup_(ss_lookups_cleanup) struct ss_lookups *again = ss_lookups_new();
	_cleanup_buffer_ struct ss_buffer bytes = {};
	_cleanup_free_ char *names = calloc(3 * FIT, LENGTH);
	struct ss_name name;

	assert_non_null(lookups);
	assert_non_null(again);
	assert_non_null(names);
	for (size_t i = 0; i < 3 * FIT; i++)
		(void)sprintf(names + i * LENGTH, "%0*zu", LENGTH - 1, i);
	for (size_t i = 0; i < FIT; i++)
		ss_lookups_add(lookups, i, CODE,
			       &(struct ss_name){ .symbol = names + i * LENGTH });
	assert_true(ss_lookups_write(lookups, &sources, &bytes));
	assert_true(bytes.size <= SS_LOOKUPS_SIZE_MAX);
	assert_true(ss_lookups_read(again, bytes.bytes, bytes.size, &sources));
	assert_true(ss_lookups_find(again, 7, CODE, &name));
	for (size_t i = FIT; i < FIT + FIT / 2; i++)
		ss_lookups_add(again, i, CODE,
			       &(struct ss_name){ .symbol = names + i * LENGTH });
	ss_buffer_clear(&bytes);
	assert_true(ss_lookups_write(again, &sources, &bytes));
	ss_lookups_free(take_ptr(lookups));
	lookups = ss_lookups_new();
	assert_true(ss_lookups_read(lookups, bytes.bytes, bytes.size, &sources));
	assert_true(ss_lookups_find(lookups, 7, CODE, &name)); /* found before */
	assert_true(ss_lookups_find(lookups, FIT, CODE, &name));
	assert_false(ss_lookups_find(lookups, 8, CODE, &name));
	for (size_t i = FIT + FIT / 2; i < 3 * FIT; i++)
		ss_lookups_add(again, i, CODE,
			       &(struct ss_name){ .symbol = names + i * LENGTH });
	ss_buffer_clear(&bytes);
	assert_false(ss_lookups_write(again, &sources, &bytes));
}

/* Of texts with a key, only the current one is kept. */
TEST(test_notes)
{
	_cleanup_buffer_ struct ss_buffer bytes = {};
	const struct ss_name old = { .symbol = "old-dbgsym" };
	const struct ss_name new = { .symbol = "new-dbgsym" };
	struct ss_lookups *lookups = ss_lookups_new();
	struct ss_name name;

	fill(&bytes);
	for (uint64_t key = 1; key <= 2; key++) {
		assert_true(ss_lookups_read(lookups, bytes.bytes, bytes.size, &sources));
		assert_false(ss_lookups_find(lookups, key, SS_LOOKUP_NOTE, &name));
		ss_lookups_add(lookups, key, SS_LOOKUP_NOTE, key == 1 ? &old : &new);
		ss_buffer_clear(&bytes);
		assert_true(ss_lookups_write(lookups, &sources, &bytes));
		ss_lookups_free(lookups);
		lookups = ss_lookups_new();
	}
	assert_true(ss_lookups_read(lookups, bytes.bytes, bytes.size, &sources));
	assert_false(ss_lookups_find(lookups, 1, SS_LOOKUP_NOTE, &name));
	assert_true(ss_lookups_find(lookups, 2, SS_LOOKUP_NOTE, &name));
	assert_string_equal(name.symbol, "new-dbgsym");
	assert_true(ss_lookups_find(lookups, 0x1010, CODE, &name));
	ss_lookups_free(lookups);
}
