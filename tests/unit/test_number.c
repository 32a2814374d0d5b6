#include "unit.h"

#include <stdlib.h>

#include "cli/arguments.h"

TEST(test_numbers)
{
	uint64_t value = 7;

	assert_int_equal(ss_number_parse("", 0, 9, &value), SS_NUMBER_NONE);
	assert_int_equal(ss_number_parse("+1", 0, 9, &value), SS_NUMBER_NONE);
	assert_int_equal(ss_number_parse("-", 0, 9, &value), SS_NUMBER_NONE);
	assert_int_equal(ss_number_parse("-1", 0, 9, &value), SS_NUMBER_NEGATIVE);
	assert_int_equal(ss_number_parse("10", 0, 9, &value), SS_NUMBER_RANGE);
	assert_int_equal(ss_number_parse("18446744073709551616", 0, UINT64_MAX, &value),
			 SS_NUMBER_RANGE);
	assert_int_equal(value, 7);
	assert_int_equal(ss_number_parse("18446744073709551615", 0, UINT64_MAX, &value),
			 SS_NUMBER_OK);
	assert_true(value == UINT64_MAX);
}
