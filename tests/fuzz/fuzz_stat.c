/* /proc/PID/task/TID/stat. */
#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_stat result;

	if (ss_stat_parse((const char *)data, size, &result))
		fuzz_touch(&result, sizeof(result));
	return 0;
}
