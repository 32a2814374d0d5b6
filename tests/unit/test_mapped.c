/*
 * The build-id of what is mapped at an address: only of the file that the caller means. By the time
 * of the question, the process may have mapped another one there.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "process/files.h"

TEST(test_other_file)
{
	_cleanup_close_ int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint64_t address = (uint64_t)(uintptr_t)test_other_file;
	uint8_t id[SS_MAPPED_BUILD_ID_MAX];
	struct ss_mapped mapped;

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
