/* /proc/PID/fdinfo/FD. */
#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *cursor = (const char *)data;
	const char *end = cursor + size;
	struct ss_fdinfo info;
	struct ss_fdinfo_watch watch;

	if (ss_fdinfo_parse(cursor, size, &info))
		fuzz_touch(&info, sizeof(info));
	while (ss_fdinfo_next_watch(&cursor, end, &watch))
		FUZZ_REQUIRE(watch.fd >= 0);
	FUZZ_REQUIRE(cursor == end);
	return 0;
}
