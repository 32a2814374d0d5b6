/* /proc/PID/maps: line by line, and as the areas and modules of a capture. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "data/regions.h"
#include "base/procfs.h"

static void read_lines(const char *text, size_t size)
{
	const char *cursor = text, *end = text + size;
	struct ss_maps_entry entry;

	while (ss_maps_next(&cursor, end, &entry)) {
		char name[64];
		size_t length;

		FUZZ_REQUIRE(cursor > text && cursor <= end);
		FUZZ_REQUIRE(entry.name_size == 0 ||
			     (entry.name >= text && entry.name + entry.name_size <= end));
		length =
			ss_maps_unescape(entry.name, entry.name_size, name, sizeof(name));
		FUZZ_REQUIRE(length < sizeof(name) && name[length] == '\0');
	}
}

static void read_regions(const char *text, size_t size)
{
	_cleanup_(ss_capture_cleanup) struct ss_capture *capture = ss_capture_new();
	struct ss_buffer maps = { .bytes = calloc(1, size + 1), .size = size };

	FUZZ_REQUIRE(capture && maps.bytes);
	memcpy(maps.bytes, text, size);
	maps.capacity = size + 1;
	ss_error_free(ss_regions_read(capture, &maps));
	for (size_t i = 0; i < capture->areas.count; i++) {
		int32_t module = capture->areas.items[i].module;

		FUZZ_REQUIRE(module < (int32_t)capture->modules.count);
		fuzz_touch(capture->areas.items[i].name,
			   strlen(capture->areas.items[i].name));
	}
	(void)ss_regions_conflict(&maps, &maps);
	ss_buffer_deinit(&maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_lines((const char *)data, size);
	read_regions((const char *)data, size);
	return 0;
}
