/*
 * Cache files of names. The input is taken as it is, and, since no fuzzer guesses a
 * hash, as what follows an intact header and the expected sources: what is accepted can be
 * found, and written and read again.
 */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fuzz.h"
#include "symbolize/names.h"

enum { HEADER_SIZE = 24, SOURCES_SIZE = 1 + 3 * 5 * 8 };

static const struct ss_lookup_sources sources;

static void touch(const char *text)
{
	if (text)
		(void)fuzz_touch(text, strlen(text) + 1);
}

static void look(struct ss_lookups *lookups)
{
	struct ss_name name;

	for (uint64_t address = 0; address < 256; address++) {
		if (!ss_lookups_find(lookups, address, (uint8_t)(address % 4), &name))
			continue;
		FUZZ_REQUIRE(name.inline_count <= SS_INLINES_MAX);
		touch(name.symbol);
		touch(name.line.file);
		for (size_t i = 0; i < name.inline_count; i++) {
			touch(name.inlines[i].name);
			touch(name.inlines[i].call.file);
		}
	}
}

static void try(const uint8_t *data, size_t size)
{
	struct ss_lookups *lookups = ss_lookups_new();
	struct ss_lookups *again = ss_lookups_new();
	struct ss_buffer bytes = {};

	FUZZ_REQUIRE(lookups && again);
	if (ss_lookups_read(lookups, data, size, &sources)) {
		look(lookups);
		if (ss_lookups_write(lookups, &sources, &bytes)) {
			FUZZ_REQUIRE(ss_lookups_read(again, bytes.bytes, bytes.size,
						     &sources));
			look(again);
		}
	}
	ss_buffer_deinit(&bytes);
	ss_lookups_free(lookups);
	ss_lookups_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t rest = SOURCES_SIZE + size;
	uint8_t *bytes = calloc(1, HEADER_SIZE + rest);

	try(data, size);
	FUZZ_REQUIRE(bytes);
	memcpy(bytes, "SSNAMES\2", 8);
	if (size)
		memcpy(bytes + HEADER_SIZE + SOURCES_SIZE, data, size);
	uint64_t hash = XXH3_64bits(bytes + HEADER_SIZE, rest);
	memcpy(bytes + 8, &rest, sizeof(rest));
	memcpy(bytes + 16, &hash, sizeof(hash));
	try(bytes, HEADER_SIZE + rest);
	free(bytes);
	return 0;
}
