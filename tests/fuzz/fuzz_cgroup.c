/* /proc/PID/cgroup, or a file of a cgroup. */
#include <string.h>

#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *path = NULL;
	size_t length = 0;

	if (ss_cgroup_find_path(text, size, &path, &length)) {
		FUZZ_REQUIRE(length > 0 && path[0] == '/');
		FUZZ_REQUIRE(!memmem(path, length, "/../", 4));
		fuzz_touch(path, length);
	}
	(void)ss_cgroup_is_below(text, size, "/a");
	(void)ss_cgroup_is_frozen(text, size);
	(void)ss_cgroup_has_thread(text, size, 1);
	return 0;
}
