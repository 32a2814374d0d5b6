/* Perf maps: every name that is found is terminated. */
#include <string.h>

#include "fuzz.h"
#include "symbolize/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_perfmap *map = ss_perfmap_new((const char *)data, size, size / 2);
	struct ss_symbol symbol;

	FUZZ_REQUIRE(map);
	for (uint64_t address = 0; address < 4096; address++) {
		if (!ss_perfmap_find(map, address, &symbol))
			continue;
		FUZZ_REQUIRE(address - symbol.start < symbol.size);
		fuzz_touch(symbol.name, strlen(symbol.name) + 1);
	}
	ss_perfmap_free(map);
	return 0;
}
