#include "unit.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/targets.h"

TEST(test_targets)
{
	struct ss_target_argument argument = {};

	assert_null(ss_target_argument_parse("12/12,15", &argument));
	assert_int_equal(argument.pid, 12);
	assert_int_equal(argument.tids.count, 2);
	assert_int_equal(argument.tids.items[1], 15);
	ss_target_argument_deinit(&argument);
	const char *const wrong[] = { "", "0", "12/", "12/1,", "12/,1", "12/0", "/1" };
	for (size_t i = 0; i < SS_ARRAY_SIZE(wrong); i++) {
		_cleanup_error_ struct ss_error *error =
			ss_target_argument_parse(wrong[i], &argument);
		assert_non_null(error);
	}
}
