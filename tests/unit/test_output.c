#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/output.h"

static void test_pattern(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pattern) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
