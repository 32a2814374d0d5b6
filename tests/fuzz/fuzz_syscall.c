/* /proc/PID/task/TID/syscall. */
#include "base/procfs.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ss_syscall_text result;

	if (ss_syscall_parse((const char *)data, size, &result))
		FUZZ_REQUIRE(result.kind <= SS_SYSCALL_BLOCKED);
	return 0;
}
