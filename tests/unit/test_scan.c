

#include "unit.h"

#include "base/scan.h"

TEST(test_decimal)
{
	uint64_t value = 7;

	assert_true(ss_scan_decimal("0", 10, &value));
	assert_int_equal(value, 0);
	assert_true(ss_scan_decimal("18446744073709551615", UINT64_MAX, &value));
	assert_int_equal(value, UINT64_MAX);
	value = 7;
	assert_false(ss_scan_decimal("18446744073709551616", UINT64_MAX, &value));
	assert_false(ss_scan_decimal("11", 10, &value));
	assert_false(ss_scan_decimal("", 10, &value));
	assert_false(ss_scan_decimal("-1", 10, &value));
	assert_false(ss_scan_decimal("1 ", 10, &value));
	assert_false(ss_scan_decimal("a", 10, &value));
	assert_int_equal(value, 7);
}

TEST(test_pid)
{
	assert_int_equal(ss_scan_pid("4711"), 4711);
	assert_int_equal(ss_scan_pid("2147483647"), 2147483647);
	assert_int_equal(ss_scan_pid("2147483648"), 0);
	assert_int_equal(ss_scan_pid("self"), 0);
	assert_int_equal(ss_scan_pid("."), 0);
	assert_int_equal(ss_scan_pid("12x"), 0);
}

TEST(test_pid_list)
{
	static const char list[] = "4711 4712 \n";
	struct ss_scan scan = { .at = list, .end = list + sizeof(list) - 1 };
	pid_t pid = 0;

	assert_true(ss_scan_next_pid(&scan, &pid));
	assert_int_equal(pid, 4711);
	assert_true(ss_scan_next_pid(&scan, &pid));
	assert_int_equal(pid, 4712);
	assert_false(ss_scan_next_pid(&scan, &pid));
	scan = (struct ss_scan){};
	assert_false(ss_scan_next_pid(&scan, &pid));
	assert_int_equal(pid, 4712);
}
