#include "unit.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/output.h"

TEST(test_pattern)
{
	assert_null(ss_output_check("a%p%t%%"));
	assert_true(ss_output_is_per_target("%%%p"));
	assert_false(ss_output_is_per_target("%%p"));
	assert_false(ss_output_is_per_target(NULL));
	const char *const wrong[] = { "", "%", "a%z", "%%%" };
	for (size_t i = 0; i < SS_ARRAY_SIZE(wrong); i++) {
		_cleanup_error_ struct ss_error *error = ss_output_check(wrong[i]);
		assert_non_null(error);
	}
}
