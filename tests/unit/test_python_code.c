/*
 * Line tables of CPython in their three encodings, and strings and code objects in memory that
 * is made up, with each way in which they can be invalid.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtime/python/python.h"

enum { BASE = 0x10000, SIZE = 0x1000 };

static uint8_t bytes[SIZE];
static uint64_t copies = 1; /* of these bytes, one after the other */

static size_t read_bytes(const struct ss_memory *memory, uint64_t address, void *ret,
			 size_t size)
{
	uint64_t at = address - BASE;

	(void)memory;
	if (at >= SIZE * copies)
		return 0;
	uint64_t copy = at - at % SIZE;
	at %= SIZE;
	size = SS_MIN(size, (size_t)(SIZE - at));
	memcpy(ret, bytes + at, size);
	/* The file, names and line table of a code object are in the same copy. */
	for (uint64_t field = 0x800 + 112; copy && field <= 0x800 + 136; field += 8) {
		if (field < at || field + 8 > at + size)
			continue;
		uint64_t pointer;
		memcpy(&pointer, bytes + field, sizeof(pointer));
		pointer += copy;
		memcpy((uint8_t *)ret + (field - at), &pointer, sizeof(pointer));
	}
	return size;
}

static const struct ss_memory memory = { .read = read_bytes };

static void put(size_t at, uint64_t value)
{
	memcpy(bytes + at, &value, sizeof(value));
}

static uint32_t line_of(enum ss_python_lines encoding, const char *table, size_t size,
			int64_t offset)
{
	uint32_t line = UINT32_MAX;

	if (!ss_python_line(encoding, (const uint8_t *)table, size, 10, offset, &line))
		return UINT32_MAX;
	return line;
}

TEST(test_lnotab)
{
	static const char table[] = "\x06\x01\x08\x7f\x00\x05\x04\xfe";

	assert_int_equal(line_of(SS_PYTHON_LNOTAB, table, 8, -1), 10);
	assert_int_equal(line_of(SS_PYTHON_LNOTAB, table, 8, 4), 10);
	assert_int_equal(line_of(SS_PYTHON_LNOTAB, table, 8, 6), 11);
	assert_int_equal(line_of(SS_PYTHON_LNOTAB, table, 8, 14), 143);
	assert_int_equal(line_of(SS_PYTHON_LNOTAB, table, 8, 1000), 141);
	assert_int_equal(line_of(SS_PYTHON_LNOTAB, "\x00\x80", 2, 0), UINT32_MAX);
}

TEST(test_pairs)
{
	static const char table[] = "\x04\x01\x02\x80\x04\xff";

	assert_int_equal(line_of(SS_PYTHON_LINE_PAIRS, table, 6, -2), 10);
	assert_int_equal(line_of(SS_PYTHON_LINE_PAIRS, table, 6, 2), 11);
	assert_int_equal(line_of(SS_PYTHON_LINE_PAIRS, table, 6, 4), 0);
	assert_int_equal(line_of(SS_PYTHON_LINE_PAIRS, table, 6, 8), 10);
	assert_int_equal(line_of(SS_PYTHON_LINE_PAIRS, table, 6, 10), UINT32_MAX);
}

TEST(test_locations)
{
	/* short, 2 units; one line +1; no columns -2; long +70; none */
	static const char table[] =
		"\x81\x00\xd8\x01\x02\xe8\x05\xf0\x4c\x02\x01\x01\x01\xf8";
	const size_t size = sizeof(table) - 1;

	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, -2), 10);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, 2), 10);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, 4), 11);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, 6), 9);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, 8), 79);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, 10), 0);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, size, 12), UINT32_MAX);
	/* Cut, and not the first byte of an entry */
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, table, 8, 8), UINT32_MAX);
	assert_int_equal(line_of(SS_PYTHON_LOCATIONS, "\x01\x00", 2, 0), UINT32_MAX);
}

/* A type with its name at once after it. */
static uint64_t put_type(size_t at, const char *name)
{
	put(at + 24, BASE + at + 32);
	memcpy(bytes + at + 32, name, strlen(name) + 1);
	return BASE + at;
}

static uint64_t put_string(size_t at, uint64_t type, unsigned kind, const void *text,
			   size_t length)
{
	bool ascii = kind == 0;

	put(at, 1);
	put(at + 8, type);
	put(at + 16, length);
	put(at + 32, (ascii ? 1u : kind) << 2 | 1u << 5 | (uint64_t)ascii << 6);
	memcpy(bytes + at + (ascii ? 48 : 72), text, length * (ascii ? 1 : kind));
	return BASE + at;
}

static void make_layout(struct ss_python_layout *layout)
{
	const char *why = NULL;

	memset(bytes, 0, sizeof(bytes));
	assert_true(
		ss_python_layout_find(0x030b07f0, "x86_64", &memory, BASE, layout, &why));
}

TEST(test_strings)
{
	struct ss_python_layout layout;
	static char text[4 * SS_PYTHON_NAME_MAX + 1];

	make_layout(&layout);
	uint64_t type = put_type(0x100, "str");
	assert_true(ss_python_string(&layout, &memory,
				     put_string(0x200, type, 0, "main", 4), text));
	assert_string_equal(text, "main");
	assert_true(ss_python_string(
		&layout, &memory, put_string(0x300, type, 2, u"\u00e9\u4e2d", 2), text));
	assert_string_equal(text, "é中");
	assert_true(ss_python_string(&layout, &memory,
				     put_string(0x400, type, 4, U"\U0001d4b3", 1), text));
	assert_string_equal(text, "𝒳");
	put(0x200 + 16, SS_PYTHON_NAME_MAX + 1); /* too long */
	assert_false(ss_python_string(&layout, &memory, BASE + 0x200, text));
	put(0x300 + 32, 3u << 2 | 1u << 5); /* no such kind */
	assert_false(ss_python_string(&layout, &memory, BASE + 0x300, text));
	put(0x400 + 8, put_type(0x500, "int"));
	assert_false(ss_python_string(&layout, &memory, BASE + 0x400, text));
	assert_false(ss_python_string(&layout, &memory, BASE + 0x201, text));
	assert_false(ss_python_string(&layout, &memory, 0, text));
}

/* A code object of 3.11 at 0x800. */
static void put_code(void)
{
	uint64_t str = put_type(0x100, "str");

	put(0x800, 1);
	put(0x808, put_type(0x180, "code"));
	put(0x800 + 72, 10);
	put(0x800 + 112, put_string(0x200, str, 0, "a.py", 4));
	put(0x800 + 120, put_string(0x280, str, 0, "f", 1));
	put(0x800 + 128, put_string(0x300, str, 0, "C.f", 3));
	put(0x800 + 136, BASE + 0x400);
	put(0x400, 1);
	put(0x408, put_type(0x480, "bytes"));
	put(0x410, 2);
	memcpy(bytes + 0x420, "\x80\x00", 2);
}

TEST(test_code)
{
	/* What makes it invalid: the reference count, its type, its name, its line table */
	static const size_t invalid[] = { 0x800, 0x808, 0x800 + 128, 0x800 + 136 };
	struct ss_python_layout layout;

	for (size_t i = 0; i <= SS_ARRAY_SIZE(invalid); i++) {
		_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
		struct ss_python_codes codes = { .layout = &layout,
						 .memory = &memory,
						 .fresh = &memory,
						 .strings = strings };
		const struct ss_python_code *code = NULL;
		make_layout(&layout);
		put_code();
		if (i < SS_ARRAY_SIZE(invalid))
			put(invalid[i], 0);
		assert_true(ss_python_codes_find(&codes, BASE + 0x800, &code));
		if (i < SS_ARRAY_SIZE(invalid)) {
			assert_null(code);
		} else {
			assert_string_equal(code->name, "C.f");
			assert_string_equal(code->file, "a.py");
			assert_int_equal(code->identity.first_line, 10);
		}
		ss_python_codes_deinit(&codes);
	}
}

static unsigned compared; /* pieces */

static void compare(void *data, struct ss_memory_range *ranges, size_t count)
{
	(void)data;
	for (size_t i = 0; i < count; i++)
		ranges[i].done = read_bytes(&memory, ranges[i].address, ranges[i].bytes,
					    ranges[i].size);
	compared += (unsigned)count;
}

static size_t read_nothing(const struct ss_memory *self, uint64_t address, void *ret,
			   size_t size)
{
	(void)self;
	(void)address;
	(void)ret;
	(void)size;
	return 0;
}

/* The name of the code object in a later capture; NULL: none. may_read: it may be read anew. */
static const char *find_name(const struct ss_runtime_process *process,
			     struct ss_intern *strings, bool may_read)
{
	static const struct ss_memory nothing = { .read = read_nothing };
	const struct ss_python_layout *layout = process->read_data;
	const struct ss_python_code *code = NULL;
	struct ss_python_codes codes = { .layout = layout,
					 .memory = may_read ? &memory : &nothing,
					 .fresh = may_read ? &memory : &nothing,
					 .strings = strings,
					 .kept = ss_python_kept_begin(process, layout) };
	assert_non_null(codes.kept);
	assert_true(ss_python_codes_find(&codes, BASE + 0x800, &code));
	const char *name = code ? code->name : NULL;
	assert_true(!code || (code->table_size == 2 && strlen(code->file) == 4));
	ss_python_codes_deinit(&codes);
	return name;
}

/* A code object of an earlier capture counts only if nothing has changed that it was read from. */
TEST(test_kept)
{
	/* Its line, its file, its name, its line table, and the names of types */
	static const size_t changes[] = { 0x800 + 72, 0x230, 0x330, 0x420, 0x1a0, 0x120 };
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = ss_capture_new();
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	struct ss_session_slot slot = {};
	struct ss_python_layout layout;
	const struct ss_runtime_process process = { .capture = capture,
						    .python_codes = &slot,
						    .read_ranges = compare,
						    .read_data = &layout };

	struct ss_gathered *turn = ss_vector_push(&capture->turns);
	assert_non_null(turn);
	*turn = (struct ss_gathered){};
	struct ss_memory_block *block = ss_vector_push(&turn->blocks);
	assert_non_null(block);
	*block = (struct ss_memory_block){ .address = BASE + 0x800, .size = 8 };
	make_layout(&layout);
	put_code();
	assert_null(find_name(&process, strings, false));
	assert_string_equal(find_name(&process, strings, true), "C.f");
	assert_int_equal(compared, 0);
	assert_string_equal(find_name(&process, strings, false), "C.f");
	assert_true(compared > 4);
	/* Its reference count says nothing, unless it is freed. */
	put(0x800, 7);
	assert_string_equal(find_name(&process, strings, false), "C.f");
	put(0x800, 0);
	assert_null(find_name(&process, strings, false));
	put(0x800, 1);
	for (size_t i = 0; i < SS_ARRAY_SIZE(changes); i++) {
		bytes[changes[i]] ^= 1;
		assert_null(find_name(&process, strings, false));
		bytes[changes[i]] ^= 1;
		assert_string_equal(find_name(&process, strings, false), "C.f");
	}
	/* Another function, whose objects are at the same addresses */
	bytes[0x330 + 2] = 'g';
	assert_string_equal(find_name(&process, strings, true), "C.g");
	assert_string_equal(find_name(&process, strings, false), "C.g");
	bytes[0x330 + 2] = 'f';
	assert_null(find_name(&process, strings, false));
	assert_string_equal(find_name(&process, strings, true), "C.f");
	/* What no thread executes is not compared. */
	compared = 0;
	block->address++;
	assert_null(find_name(&process, strings, false));
	assert_int_equal(compared, 0);
	slot.free(slot.data);
}

/* Functions of which more is to be compared than is allowed: some are. */
TEST(test_many_kept)
{
	enum { CODES = 5000 };
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = ss_capture_new();
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	struct ss_session_slot slot = {};
	struct ss_python_layout layout;
	const struct ss_runtime_process process = { .capture = capture,
						    .python_codes = &slot,
						    .read_ranges = compare };
	size_t found = 0;

	struct ss_gathered *turn = ss_vector_push(&capture->turns);
	assert_non_null(turn);
	*turn = (struct ss_gathered){};
	make_layout(&layout);
	put_code();
	copies = CODES;
	struct ss_python_codes codes = { .layout = &layout,
					 .memory = &memory,
					 .fresh = &memory,
					 .strings = strings,
					 .kept = ss_python_kept_begin(&process,
								      &layout) };
	for (uint64_t i = 0; i < CODES; i++) {
		const struct ss_python_code *code = NULL;
		struct ss_memory_block *block = ss_vector_push(&turn->blocks);
		assert_non_null(block);
		*block = (struct ss_memory_block){ .address = BASE + i * SIZE + 0x800,
						   .size = 8 };
		assert_true(ss_python_codes_find(&codes, block->address, &code));
		assert_non_null(code);
	}
	ss_python_codes_deinit(&codes);
	compared = 0;
	struct ss_python_kept *kept = ss_python_kept_begin(&process, &layout);
	for (size_t i = 0; i < CODES; i++)
		found += ss_python_kept_find(kept, turn->blocks.items[i].address) != NULL;
	copies = 1;
	print_message("%u compared, %zu found\n", compared, found);
	assert_true(compared <= 4096);
	assert_true(found > 500);
	slot.free(slot.data);
}

TEST(test_versions)
{
	struct ss_python_layout layout;
	const char *why = NULL;

	memset(bytes, 0, sizeof(bytes));
	for (unsigned minor = 0; minor < 20; minor++) {
		bool known = minor >= 8 && minor <= 12;
		assert_int_equal(ss_python_layout_find(3u << 24 | minor << 16, "x86_64",
						       &memory, BASE, &layout, &why),
				 known);
		assert_false(ss_python_layout_find(3u << 24 | minor << 16, "riscv64",
						   &memory, BASE, &layout, &why));
		assert_non_null(why);
	}
	assert_false(ss_python_layout_find(2u << 24 | 7u << 16, "x86_64", &memory, BASE,
					   &layout, &why));
}

/* The table of Debian's CPython 3.14.10, as its process has it. */
TEST(test_table)
{
	static const uint64_t words[81] = {
		[1] = 0x030e0af0,
		[3] = 316616,
		784,
		808,
		[6] = 225864,
		7280,
		7272,
		7344,
		7360,
		7408,
		7688,
		7673,
		7680,
		16,
		7784,
		0,
		7800,
		7792,
		7992,
		0,
		[22] = 832,
		0,
		8,
		16,
		72,
		152,
		160,
		232,
		32,
		[31] = 88,
		8,
		0,
		56,
		80,
		74,
		64,
		0,
		[39] = 216,
		112,
		120,
		128,
		136,
		68,
		52,
		96,
		104,
		208,
		0,
		[74] = 40,
		16,
		32,
		[77] = 64,
		32,
		16,
		40,
	};
	const uint64_t tagged = 0x7f0000001000 | 1;
	struct ss_python_layout layout;
	const char *why = NULL;
	uint8_t frame[88] = {};

	memcpy(bytes, words, sizeof(words));
	memcpy(bytes, "xdebugpy", 8);
	assert_true(ss_python_layout_find(0x030e0af0, "x86_64", &memory, BASE, &layout,
					  &why));
	assert_int_equal(layout.interpreters, 808);
	assert_int_equal(layout.interp_threads, 7344);
	assert_int_equal(layout.interp_modules, 7688);
	assert_int_equal(layout.gil, 16);
	assert_int_equal(layout.thread_frame, 72);
	assert_int_equal(layout.thread_native, 160);
	assert_int_equal(layout.frame_instruction, 56);
	assert_int_equal(layout.frame_entry, 74);
	assert_int_equal(layout.code_lines, 136);
	assert_int_equal(layout.code_bytes, 208);
	/* The pointer to its code has tags. */
	memcpy(frame, &tagged, sizeof(tagged));
	assert_true(ss_python_frame_code(&layout, frame) == tagged - 1);
	/* Of another version, free-threaded, or with a member outside of its structure */
	assert_false(ss_python_layout_find(0x030e09f0, "x86_64", &memory, BASE, &layout,
					   &why));
	bytes[2 * 8] = 1;
	assert_false(ss_python_layout_find(0x030e0af0, "x86_64", &memory, BASE, &layout,
					   &why));
	assert_non_null(strstr(why, "free-threaded"));
	bytes[2 * 8] = 0;
	bytes[36 * 8] = 88;
	assert_false(ss_python_layout_find(0x030e0af0, "x86_64", &memory, BASE, &layout,
					   &why));
}
