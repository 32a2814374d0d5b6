/*
 * Objects of V8: the first 8 bytes choose the version and an address; the rest is memory, with
 * objects and code at every word.
 */
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "runtime/v8/v8.h"

enum { BASE = 0x10000, SYMBOLS = 0x1000, SIZES = 0x2000, WORDS_MAX = 192 };

struct bytes {
	struct ss_memory memory; /* first: see data/memory.h */
	const uint8_t *data;
	size_t size;
	uint32_t symbols[SS_V8_SYMBOLS];
};

static const uint32_t versions[][2] = { { 10, 2 }, { 11, 3 }, { 12, 4 }, { 9, 9 },
					{ 13, 6 }, { 14, 1 }, { 14, 6 } };

/* Of node 20 */
static const int32_t fields[] = { -8,  -16, -32, -40, 24,  8,  16,  12,	 16,  16,
				  16,  16,  24,	 16,  24,  54, 128, 205, 214, 2066,
				  262, 261, 167, 191, 245, 11, 4,   5,	 3 };

static size_t read_bytes(const struct ss_memory *memory, uint64_t address, void *bytes,
			 size_t size)
{
	static const uint8_t sizes[] = { 1, 1, 1, 1, 2, 3, 2, 2, 2, 2, 3, 5,
					 2, 2, 2, 2, 5, 9, 2, 2, 2, 2, 3, 4 };
	const struct bytes *self = (const struct bytes *)memory;

	if (address >= BASE)
		return fuzz_copy(bytes, size, self->data, self->size, address - BASE);
	if (address >= SIZES)
		return fuzz_copy(bytes, size, sizes, sizeof(sizes), address - SIZES);
	return fuzz_copy(bytes, size, self->symbols, sizeof(self->symbols),
			 address - SYMBOLS);
}

static bool find_layout(struct bytes *memory, uint8_t version, struct ss_v8_layout *ret)
{
	struct ss_v8_symbol symbols[SS_V8_SYMBOLS];
	const char *why;

	memory->symbols[SS_V8_MAJOR] = versions[version % SS_ARRAY_SIZE(versions)][0];
	memory->symbols[SS_V8_MINOR] = versions[version % SS_ARRAY_SIZE(versions)][1];
	memory->symbols[SS_V8_TAGGED_SIZE] = 8;
	memory->symbols[SS_V8_SMI_SHIFT] = 31;
	memcpy(memory->symbols + SS_V8_FIELDS, fields, sizeof(fields));
	for (size_t i = 0; i < SS_V8_SYMBOLS; i++)
		symbols[i] = (struct ss_v8_symbol){ .address = SYMBOLS + 4 * i };
	symbols[SS_V8_SIZES] = (struct ss_v8_symbol){ .address = SIZES, .size = 24 };
	memset(symbols + SS_V8_CHECKED, 0,
	       (SS_V8_SYMBOLS - SS_V8_CHECKED) * sizeof(*symbols));
	FUZZ_REQUIRE(ss_v8_version_read(&memory->memory, symbols, ret));
	bool found = ss_v8_layout_read(&memory->memory, symbols, ret, &why);
	FUZZ_REQUIRE(found || why);
	return found;
}

static void try_code(struct ss_v8_heap *heap, uint64_t pc)
{
	struct ss_v8_call calls[SS_V8_INLINED_MAX];
	struct ss_v8_code code;
	size_t count = 0;
	int64_t offset;

	if (!ss_v8_code_find(heap, pc, &code))
		return;
	FUZZ_REQUIRE(code.start <= pc && pc <= code.end);
	(void)ss_v8_code_is_unchanged(heap, &code);
	uint64_t subject = ss_v8_code_subject(heap, &code);
	if (ss_v8_code_calls(heap, &code, pc, calls, &count))
		FUZZ_REQUIRE(count <= SS_V8_INLINED_MAX);
	(void)ss_v8_baseline_offset(heap, &code, subject, pc, true, &offset);
}

static void try_object(struct ss_v8_heap *heap, uint64_t object, uint32_t position)
{
	static char text[3 * SS_V8_NAME_MAX + 1];
	const struct ss_v8_function *function = NULL;
	uint32_t line;

	if (ss_v8_string(heap, object, text))
		fuzz_touch(text, strlen(text));
	if (ss_v8_function_find(heap, object, &function) && function) {
		FUZZ_REQUIRE(function->name);
		(void)ss_v8_function_file(heap, function);
		(void)ss_v8_function_line(heap, function, position, &line);
	}
	(void)ss_v8_bytecode_position(heap, object, position, &line);
	try_code(heap, object - 1);
}

static void try_translation(const struct ss_v8_layout *layout, const uint8_t *data,
			    size_t size, uint32_t index)
{
	struct ss_v8_translated frames[SS_V8_INLINED_MAX];
	size_t count;

	(void)ss_v8_translation_read(layout, data, size, index, frames, SS_V8_INLINED_MAX,
				     &count);
	FUZZ_REQUIRE(count <= SS_V8_INLINED_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	uint64_t tables_left = 1 << 20;
	struct ss_v8_layout layout = {};

	if (size < 8 || !strings)
		return 0;
	struct bytes memory = { .memory.read = read_bytes,
				.data = data + 8,
				.size = size - 8 };
	uint64_t position;
	if (!find_layout(&memory, data[0], &layout))
		return 0;
	(void)ss_v8_position_find(&layout, memory.data, memory.size, data[1], &position);
	try_translation(&layout, memory.data, memory.size, data[1]);
	struct ss_v8_heap heap = { .layout = &layout,
				   .memory = &memory.memory,
				   .after = &memory.memory,
				   .strings = strings,
				   .tables_left = &tables_left };
	for (size_t i = 0; i < SS_MIN(memory.size / 8, (size_t)WORDS_MAX); i++)
		try_object(&heap, BASE + i * 8 + 1, data[1]);
	ss_v8_heap_deinit(&heap);
	return 0;
}
