/* /proc/PID/net/tcp and /proc/PID/net/unix. */
#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *cursor = (const char *)data;
	const char *end = cursor + size;
	struct ss_net_inet inet;
	struct ss_net_unix local;

	while (ss_net_next_inet(&cursor, end, &inet)) {
		FUZZ_REQUIRE(inet.local.size == 4 || inet.local.size == 16);
		fuzz_touch(&inet, sizeof(inet));
	}
	FUZZ_REQUIRE(cursor == end);
	for (cursor = (const char *)data; ss_net_next_unix(&cursor, end, &local);)
		fuzz_touch(local.path, local.path_size);
	FUZZ_REQUIRE(cursor == end);
	return 0;
}
