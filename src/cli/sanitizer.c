#include "cli/sanitizer.h"

#include <unistd.h>

#include "cli/escaped_copy.h"
#include "sandbox/sandbox.h"

#if defined(__SANITIZE_ADDRESS__)
void ss_sanitizer_exit(const struct ss_sandbox_result *result)
{
	enum { SANITIZER_STATUS = 99 };

	for (size_t i = 0; i < result->failure_count; i++) {
		if (result->failures[i].cause != SS_SANDBOX_EXIT ||
		    result->failures[i].code != SANITIZER_STATUS)
			continue;
		_cleanup_error_ struct ss_error *error =
			ss_escaped_copy(result->messages, false, stderr);
		(void)fflush(stderr);
		_exit(SANITIZER_STATUS);
	}
}
#else
void ss_sanitizer_exit(const struct ss_sandbox_result *result)
{
	(void)result;
}
#endif
