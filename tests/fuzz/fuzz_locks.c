/* /proc/locks. */
#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *cursor = (const char *)data;
	const char *end = cursor + size;
	struct ss_file_lock lock;

	while (ss_locks_next(&cursor, end, &lock)) {
		FUZZ_REQUIRE(lock.pid >= -1);
		fuzz_touch(&lock, sizeof(lock));
	}
	FUZZ_REQUIRE(cursor == end);
	return 0;
}
