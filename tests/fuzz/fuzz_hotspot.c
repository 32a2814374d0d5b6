/*
 * The code cache, the methods and the locks of HotSpot: the first byte chooses the version; the rest is
 * memory, in which methods, heaps, code and threads are searched for at every word.
 */
#include <string.h>

#include "base/cleanup.h"
#include "fuzz.h"
#include "fuzz_memory.h"
#include "runtime/hotspot/hotspot.h"

enum { BASE = 0x10000, WORDS_MAX = 256 };

/* Smaller structures than the real ones, so that few bytes are enough. */
static const uint64_t offsets[SS_HOTSPOT_VALUES] = {
	[SS_HOTSPOT_HEAPS_AT] = BASE,
	[SS_HOTSPOT_ARRAY_DATA] = 8,
	[SS_HOTSPOT_HEAP_SEGMENTS] = 16,
	[SS_HOTSPOT_HEAP_SHIFT] = 32,
	[SS_HOTSPOT_SPACE_HIGH] = 8,
	[SS_HOTSPOT_BLOCK_USED] = 4,
	[SS_HOTSPOT_BLOCK_SIZE] = 8,
	[SS_HOTSPOT_BLOB_BYTES] = 8,
	[SS_HOTSPOT_BLOB_FRAME_COMPLETE] = 12,
	[SS_HOTSPOT_BLOB_FRAME_SIZE] = 16,
	[SS_HOTSPOT_BLOB_CODE_BEGIN] = 24,
	[SS_HOTSPOT_BLOB_CODE_END] = 32,
	[SS_HOTSPOT_BLOB_CODE_OFFSET] = 20,
	[SS_HOTSPOT_BLOB_DATA_OFFSET] = 24,
	[SS_HOTSPOT_BLOB_MUTABLE] = 32,
	[SS_HOTSPOT_BLOB_MUTABLE_BYTES] = 40,
	[SS_HOTSPOT_BLOB_RELOCATIONS] = 44,
	[SS_HOTSPOT_NMETHOD_METHOD] = 48,
	[SS_HOTSPOT_NMETHOD_ORIGINAL_PC] = 56,
	[SS_HOTSPOT_NMETHOD_PCS] = 60,
	[SS_HOTSPOT_NMETHOD_PCS_END] = 64,
	[SS_HOTSPOT_NMETHOD_SCOPES] = 72,
	[SS_HOTSPOT_NMETHOD_METADATA] = 68,
	[SS_HOTSPOT_NMETHOD_DEOPT] = 80,
	[SS_HOTSPOT_NMETHOD_IMMUTABLE] = 88,
	[SS_HOTSPOT_NMETHOD_IMMUTABLE_BYTES] = 96,
	[SS_HOTSPOT_PC_SCOPE] = 4,
	[SS_HOTSPOT_PC_SIZE] = 8,
	[SS_HOTSPOT_METHOD_CONST] = 0,
	[SS_HOTSPOT_CONST_WORDS] = 8,
	[SS_HOTSPOT_CONST_FLAGS] = 12,
	[SS_HOTSPOT_CONST_CODE_BYTES] = 14,
	[SS_HOTSPOT_CONST_NAME] = 16,
	[SS_HOTSPOT_CONST_IDNUM] = 18,
	[SS_HOTSPOT_CONST_SIZE] = 24,
	[SS_HOTSPOT_POOL_LENGTH] = 8,
	[SS_HOTSPOT_POOL_FILE] = 12,
	[SS_HOTSPOT_POOL_SIZE] = 16,
	[SS_HOTSPOT_CLASS_METHODS] = 8,
	[SS_HOTSPOT_CLASS_CONSTANTS] = 16,
	[SS_HOTSPOT_METHODS_DATA] = 8,
	[SS_HOTSPOT_SYMBOL_BODY] = 2,
	[SS_HOTSPOT_THREAD_VIRTUAL] = 8,
	[SS_HOTSPOT_HEAP_AT] = BASE,
	[SS_HOTSPOT_CLASS_FILE] = 40,
	[SS_HOTSPOT_OBJECT_CLASS] = 8,
	[SS_HOTSPOT_OOP_SHIFT_AT] = BASE + 8,
	[SS_HOTSPOT_OOP_BASE_AT] = BASE + 16,
	[SS_HOTSPOT_CLASS_SHIFT_AT] = BASE + 24,
	[SS_HOTSPOT_CLASS_BASE_AT] = BASE + 32,
	[SS_HOTSPOT_CLASS_SUPER] = 24,
	[SS_HOTSPOT_CLASS_FIELDS] = 32,
	[SS_HOTSPOT_FIELDS_DATA] = 4,
	[SS_HOTSPOT_STREAM_DATA] = 4,
	[SS_HOTSPOT_FLAGS_AT] = BASE + 40,
	[SS_HOTSPOT_FLAG_COUNT_AT] = BASE + 48,
	[SS_HOTSPOT_FLAG_NAME] = 8,
	[SS_HOTSPOT_FLAG_SIZE] = 16,
	[SS_HOTSPOT_ZGC_AT] = BASE,
	[SS_HOTSPOT_ZGC_GOOD_MASK] = 8,
	[SS_HOTSPOT_ZGC_SHIFT] = 16,
	[SS_HOTSPOT_GC_AT] = BASE + 56,
	[SS_HOTSPOT_ZGC_HEAP] = 8,
	[SS_HOTSPOT_ZGC_HEAP_BYTES] = 128,
	[SS_HOTSPOT_ZGC_PAGES] = 8,
	[SS_HOTSPOT_ZGC_GRANULES] = 8,
	[SS_HOTSPOT_ZGC_FORWARDING_BYTES] = 32,
	[SS_HOTSPOT_ZGC_FORWARDING_SHIFT] = 8,
	[SS_HOTSPOT_ZGC_FORWARDING_LENGTH] = 16,
};

static void find_methods(const struct ss_hotspot_layout *layout,
			 const struct fuzz_memory *memory, struct ss_intern *strings)
{
	struct ss_hotspot_methods methods = { .layout = layout,
					      .memory = &memory->memory,
					      .after = &memory->memory,
					      .strings = strings };

	for (size_t i = 0; i < SS_MIN(memory->size / 8, (size_t)WORDS_MAX); i++) {
		const struct ss_hotspot_method *method = NULL;
		if (!ss_hotspot_methods_find(&methods, BASE + i * 8, &method))
			break;
		if (!method)
			continue;
		FUZZ_REQUIRE(method->name);
		fuzz_touch(method->name, strlen(method->name));
		for (int32_t bci = -1; bci < 64; bci++)
			(void)ss_hotspot_line(layout, method, bci);
	}
	ss_hotspot_methods_deinit(&methods);
}

static void find_code(const struct ss_hotspot_layout *layout,
		      const struct fuzz_memory *memory, struct ss_intern *strings)
{
	struct ss_hotspot_codes codes = { .layout = layout,
					  .memory = &memory->memory,
					  .strings = strings };
	static struct ss_hotspot_scope scopes[SS_HOTSPOT_SCOPES_MAX];

	if (!ss_hotspot_codes_init(&codes)) {
		ss_hotspot_codes_deinit(&codes);
		return;
	}
	for (size_t i = 0; i < SS_MIN(memory->size, (size_t)WORDS_MAX * 8); i++) {
		const struct ss_hotspot_blob *blob = NULL;
		uint64_t pc = BASE + i;
		if (!ss_hotspot_codes_find(&codes, pc, &blob))
			break;
		if (!blob)
			continue;
		FUZZ_REQUIRE(blob->name && ss_hotspot_contains(&blob->code, pc));
		(void)ss_hotspot_is_exact(&codes, blob, pc);
		size_t count = ss_hotspot_scopes(&codes, blob, pc, scopes);
		FUZZ_REQUIRE(count > 0 && count <= SS_HOTSPOT_SCOPES_MAX &&
			     scopes[count - 1].method == blob->method);
	}
	ss_hotspot_codes_deinit(&codes);
}

static void find_locks(const struct ss_hotspot_layout *layout,
		       const struct fuzz_memory *memory, uint8_t choice)
{
	struct ss_hotspot_objects objects = { .layout = layout,
					      .memory = &memory->memory,
					      .fresh = &memory->memory,
					      .shift = -1,
					      .class_shift = -1 };
	uint64_t lock = 0;
	uint64_t owner = 0;

	/* Else the flags must be in memory. */
	objects.tried = objects.usable = choice & 1;
	objects.compact = choice & 2;
	for (size_t i = 0; i < SS_MIN(memory->size / 8, (size_t)WORDS_MAX); i++) {
		if (ss_hotspot_parked_for(&objects, BASE + i * 8, &lock, &owner))
			FUZZ_REQUIRE(lock && owner);
	}
}

/* Each word as a pointer, and a heap that is at each word. */
static void find_objects(const struct ss_hotspot_layout *layout,
			 const struct fuzz_memory *memory)
{
	const size_t count = SS_MIN(memory->size / 8, (size_t)WORDS_MAX);
	struct ss_hotspot_zgc zgc;
	uint64_t pointer;
	uint64_t object;

	if (!ss_hotspot_zgc_init(&zgc, layout, &memory->memory) || !zgc.used)
		zgc = (struct ss_hotspot_zgc){ .layout = layout,
					       .fresh = &memory->memory,
					       .good_mask_at = BASE,
					       .shift_at = BASE + 8,
					       .offset_mask = (1ul << 24) - 1,
					       .old = { 8, BASE },
					       .young = { 8, BASE + 64 } };
	for (size_t i = 0; i < count; i++) {
		if (!ss_memory_read_u64(&memory->memory, BASE + i * 8, &pointer))
			break;
		if (ss_hotspot_zgc_find(&zgc, pointer, &object))
			FUZZ_REQUIRE(object == 0 || object > zgc.offset_mask);
		(void)ss_hotspot_zgc_is_same(&zgc, pointer, BASE);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ss_intern_cleanup) struct ss_intern *strings = ss_intern_new();
	uint64_t symbols[SS_HOTSPOT_SYMBOLS];
	struct ss_hotspot_layout layout;
	const char *why = NULL;

	if (size < 8 || !strings)
		return 0;
	const struct fuzz_memory memory = fuzz_memory(BASE, data + 8, size - 8);
	for (size_t i = 0; i < SS_HOTSPOT_SYMBOLS; i++)
		symbols[i] = BASE + i * 8;
	if (!ss_hotspot_layout_read(&memory.memory, symbols, &layout, &why))
		FUZZ_REQUIRE(why);
	memcpy(layout.at, offsets, sizeof(layout.at));
	layout.code_offsets = data[0] & 17;
	layout.separate_data = data[0] & 1;
	layout.no_zeros = data[0] & 2;
	layout.field_stream = data[0] & 4;
	layout.owner_ids = data[0] & 8;
	layout.virtual_threads = data[0] & 8;
	layout.class_has_file = data[0] & 32;
	layout.direct_objects = data[0] & 64;
	layout.one_heap = data[0] & 128;
	find_methods(&layout, &memory, strings);
	find_code(&layout, &memory, strings);
	find_locks(&layout, &memory, data[1]);
	find_objects(&layout, &memory);
	return 0;
}
