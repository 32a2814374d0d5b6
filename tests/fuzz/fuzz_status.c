/* /proc/PID/task/TID/status. */
#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_status result;

	if (ss_status_parse((const char *)data, size, &result))
		fuzz_touch(&result, sizeof(result));
	return 0;
}
