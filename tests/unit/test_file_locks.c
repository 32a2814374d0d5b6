#include "unit.h"

#include <string.h>

#include "base/procfs.h"

TEST(test_lines)
{
	static const char text[] = "1: POSIX  ADVISORY  WRITE 4711 08:1f:1234 10 19\n"
				   "1: -> POSIX  ADVISORY  READ  4712 08:1f:1234 12 16\n"
				   "2: FLOCK  ADVISORY  WRITE 4713 00:2a:99 0 EOF\n"
				   "2:   -> FLOCK  ADVISORY  WRITE 4714 00:2a:99 0 EOF\n"
				   "3: LEASE  ACTIVE    READ 1 00:2a:99 0 EOF\n"
				   "4: OFDLCK ADVISORY  WRITE -1 00:2a:98 0 EOF";
	const char *cursor = text;
	const char *end = text + strlen(text);
	struct ss_file_lock lock;

	assert_true(ss_locks_next(&cursor, end, &lock));
	assert_int_equal(lock.id, 1);
	assert_false(lock.waits);
	assert_true(lock.write);
	assert_int_equal(lock.pid, 4711);
	assert_int_equal(lock.device, UINT64_C(8) << 32 | 0x1f);
	assert_int_equal(lock.inode, 1234);
	assert_int_equal(lock.first, 10);
	assert_int_equal(lock.last, 19);
	assert_true(ss_locks_next(&cursor, end, &lock));
	assert_true(lock.waits);
	assert_false(lock.write);
	assert_int_equal(lock.pid, 4712);
	assert_true(ss_locks_next(&cursor, end, &lock));
	assert_int_equal(lock.type, SS_FILE_LOCK_FLOCK);
	assert_true(lock.last == UINT64_MAX);
	assert_true(ss_locks_next(&cursor, end, &lock));
	assert_true(lock.waits);
	assert_int_equal(lock.pid, 4714);
	assert_true(ss_locks_next(&cursor, end, &lock));
	assert_int_equal(lock.type, SS_FILE_LOCK_OFD);
	assert_int_equal(lock.pid, -1);
	assert_false(ss_locks_next(&cursor, end, &lock));
}

TEST(test_bad_lines)
{
	static const char *const texts[] = {
		"",
		"1",
		"1: POSIX",
		"1: POSIX  ADVISORY  WRITE",
		"1: POSIX  ADVISORY  WRITE 99999999999 08:1f:1234 0 EOF",
		"1: POSIX  ADVISORY  WRITE 1 08:1f 0 EOF",
		"1: POSIX  ADVISORY  WRITE 1 08:1f:1234 0",
		"1: POSIX  ADVISORY  NEITHER 1 08:1f:1234 0 EOF",
	};
	struct ss_file_lock lock;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *cursor = texts[i];
		assert_false(ss_locks_next(&cursor, cursor + strlen(cursor), &lock));
	}
}

static uint64_t find(const char *text, struct ss_lock_request wanted)
{
	struct ss_file_lock lock;

	wanted.inode = 7;
	wanted.device = (uint64_t)8 << 32 | 1;
	return ss_locks_find(text, strlen(text), &wanted, &lock) ? lock.id : 0;
}

TEST(test_find)
{
	static const char flock[] = "1: FLOCK  ADVISORY  WRITE 10 08:01:7 0 EOF\n"
				    "1: -> FLOCK  ADVISORY  WRITE 11 08:01:7 0 EOF\n"
				    "2: FLOCK  ADVISORY  WRITE 12 08:01:8 0 EOF\n";
	static const char parts[] = "1: POSIX  ADVISORY  WRITE 10 08:01:7 0 9\n"
				    "2: POSIX  ADVISORY  READ 12 08:01:7 20 29\n"
				    "3: POSIX  ADVISORY  WRITE 12 08:01:7 40 EOF\n"
				    "3: -> POSIX  ADVISORY  WRITE 13 08:01:7 30 49\n"
				    "4: FLOCK  ADVISORY  WRITE 10 08:01:7 0 EOF\n";
	struct ss_lock_request wanted = {
		.pid = 11, .type = SS_FILE_LOCK_FLOCK, .ranged = true, .last = UINT64_MAX
	};

	assert_int_equal(find(flock, wanted), 1);
	/* Not listed: it was stopped. Its own may be what it wants to change. */
	wanted.pid = 14;
	assert_int_equal(find(flock, wanted), 1);
	wanted.pid = 10;
	assert_int_equal(find(flock, wanted), 0);
	wanted = (struct ss_lock_request){ .pid = 13,
					   .type = SS_FILE_LOCK_POSIX,
					   .write = true,
					   .ranged = true,
					   .first = 30,
					   .last = 49 };
	assert_int_equal(find(parts, wanted), 3);
	wanted.pid = 14;
	assert_int_equal(find(parts, wanted), 3);
	wanted.last = 39;
	assert_int_equal(find(parts, wanted), 0);
	/* Two of them; of readers none is in the way; of an unknown part nobody knows. */
	wanted.first = 25;
	wanted.last = 45;
	assert_int_equal(find(parts, wanted), 0);
	wanted.last = 35;
	assert_int_equal(find(parts, wanted), 2);
	wanted.write = false;
	assert_int_equal(find(parts, wanted), 0);
	wanted.write = true;
	wanted.ranged = false;
	assert_int_equal(find(parts, wanted), 0);
}
