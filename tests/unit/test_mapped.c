/*
 * The build-id of what is mapped at an address: only of the file that the caller means. By the time
 * of the question, the process may have mapped another one there.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "process/files.h"

static void test_other_file(void **state)
{
	_cleanup_close_ int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint64_t address = (uint64_t)(uintptr_t)test_other_file;
	uint8_t id[SS_MAPPED_BUILD_ID_MAX];
	struct ss_mapped mapped;

	(void)state;
	assert_true(maps >= 0);
	int errnum = ss_mapped_query(maps, address, &mapped);
	if (errnum == ENOTTY)
		skip(); /* before Linux 6.11 */
	assert_int_equal(errnum, 0);
	assert_int_equal(
		ss_mapped_build_id(maps, address, mapped.device, mapped.inode, id), 20);
	assert_int_equal(
		ss_mapped_build_id(maps, address, mapped.device, mapped.inode + 1, id),
		0);
	assert_int_equal(
		ss_mapped_build_id(maps, address, mapped.device + 1, mapped.inode, id),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
