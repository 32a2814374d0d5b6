/*
 * ELF images that a compiler describes to debuggers: the input is the memory from the descriptor
 * on.
 */
#include <string.h>

#include "data/snapshot.h"
#include "fuzz.h"
#include "unwind/unwinder.h"

#define BASE UINT64_C(0x10000000)

struct copy {
	struct ss_memory memory;
	const uint8_t *bytes;
	size_t size;
};

static size_t read_copy(const struct ss_memory *memory, uint64_t address, void *bytes,
			size_t size)
{
	const struct copy *copy = (const void *)memory;
	const uint64_t at = address - BASE;

	if (at >= copy->size)
		return 0;
	size = SS_MIN(size, copy->size - (size_t)at);
	memcpy(bytes, copy->bytes + at, size);
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct copy copy = { { read_copy }, data, size };
	struct ss_registered registered = {};
	struct ss_snapshot *snapshot = ss_snapshot_new();
	struct ss_cfi_entry entry;

	FUZZ_REQUIRE(snapshot &&
		     ss_registered_add_images(&registered, &copy.memory, BASE));
	for (size_t i = 0; i < registered.images.count; i++) {
		const struct ss_jit_image *image = &registered.images.items[i];
		FUZZ_REQUIRE(image->start < image->end);
		if (image->frames)
			(void)ss_cfi_entry_find_in_index(image->frames, image->start,
							 &entry);
	}
	FUZZ_REQUIRE(ss_registered_add_names(&registered, snapshot));
	for (size_t i = 0; i < snapshot->perf_maps.count; i++)
		fuzz_touch(snapshot->perf_maps.items[i].file->bytes,
			   snapshot->perf_maps.items[i].file->size);
	ss_registered_deinit(&registered);
	ss_snapshot_free(snapshot);
	return 0;
}
