#include "unit.h"

#include <string.h>

#include "base/procfs.h"

static struct ss_fdinfo parse(const char *text)
{
	struct ss_fdinfo info;

	assert_true(ss_fdinfo_parse(text, strlen(text), &info));
	return info;
}

TEST(test_kinds)
{
	struct ss_fdinfo info =
		parse("pos:\t12\nflags:\t02000001\nmnt_id:\t15\nino:\t1\n");

	assert_int_equal(info.position, 12);
	assert_int_equal(info.flags, 02000001);
	assert_false(info.has_count || info.has_mask || info.has_timer || info.has_pid);
	info = parse(
		"pos:\t0\nflags:\t02\neventfd-count:                1f\neventfd-id: 3\n");
	assert_true(info.has_count);
	assert_int_equal(info.count, 0x1f);
	info = parse("flags:\t02\nsigmask:\t0000000000000201\n");
	assert_int_equal(info.mask, 0x201);
	info = parse("flags:\t02\nclockid: 1\nticks: 0\nsettime flags: 01\n"
		     "it_value: (3599, 999000000)\nit_interval: (2, 5)\n");
	assert_true(info.has_timer);
	assert_int_equal(info.clock, 1);
	assert_int_equal(info.left_ns, 3599999000000);
	assert_int_equal(info.interval_ns, 2000000005);
	info = parse("flags:\t02\nPid:\t4711\nNSpid:\t4711\t3\n");
	assert_int_equal(info.pid, 4711);
	info = parse("flags:\t02\nPid:\t-1\n");
	assert_int_equal(info.pid, -1);
	info = parse(
		"flags:\t00\ninotify wd:1 ino:2 sdev:3 mask:4\ninotify wd:2 ino:2\n");
	assert_int_equal(info.watches, 2);
}

TEST(test_bad_numbers)
{
	struct ss_fdinfo info =
		parse("flags:\t02\nit_value: (99999999999999999999, 0)\n");

	assert_false(info.has_timer);
	info = parse("flags:\t02\nit_value: (18446744073709551615, 0)\n");
	assert_false(info.has_timer);
	info = parse("flags:\t02\nit_value: (1, 1000000000)\n");
	assert_false(info.has_timer);
	info = parse("flags:\t02\nit_value: (1");
	assert_false(info.has_timer);
	info = parse("flags:\t02\nPid:\t99999999999\n");
	assert_false(info.has_pid);
	assert_false(ss_fdinfo_parse("flags:\t99", 9, &info));
	assert_false(ss_fdinfo_parse("pos:\t1\n", 7, &info));
	assert_false(ss_fdinfo_parse("flags:\t7777777777777777\n", 24, &info));
	assert_false(ss_fdinfo_parse("", 0, &info));
}

TEST(test_watches)
{
	static const char text[] =
		"pos:\t0\nflags:\t02\nmnt_id:\t15\n"
		"tfd:        5 events:       19 data: ffffffffffffffff  pos:0 ino:61af "
		"sdev:7\n"
		"tfd: -1 events: 19\ntfd: 99999999999 events: 1\ntfd: 7\n"
		"tfd:       12 events: 80000005 data: 0";
	const char *cursor = text;
	const char *end = text + strlen(text);
	struct ss_fdinfo_watch watch;

	assert_true(ss_fdinfo_next_watch(&cursor, end, &watch));
	assert_int_equal(watch.fd, 5);
	assert_int_equal(watch.events, 0x19);
	assert_true(ss_fdinfo_next_watch(&cursor, end, &watch));
	assert_int_equal(watch.fd, 12);
	assert_int_equal(watch.events, 0x80000005);
	assert_false(ss_fdinfo_next_watch(&cursor, end, &watch));
	assert_ptr_equal(cursor, end);
}

TEST(test_mounts)
{
	static const char text[] =
		"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
		"invalid\n36 22 0:5 / /a rw\n"
		"30 22 0:52 / /mnt/a\\040b rw,nosuid shared:3 master:1 - fuse.sshfs x "
		"rw\n"
		"31 22 0:53 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"
		"32 22 8:17 /d /mnt/c\\999 rw - fuseblk /dev/sdb1 rw";
	static const struct {
		uint64_t device;
		bool is_fuse;
		const char *path;
	} expected[] = {
		{ 8ULL << 32 | 1, false, "/" },
		{ 52, true, "/mnt/a b" },
		{ 53, false, "/sys/fs/fuse/connections" },
		{ 8ULL << 32 | 17, true, "/mnt/c\\999" },
	};
	const char *cursor = text;
	const char *end = text + strlen(text);
	struct ss_mount mount;

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_true(ss_mounts_next(&cursor, end, &mount));
		assert_int_equal(mount.device, expected[i].device);
		assert_int_equal(mount.is_fuse, expected[i].is_fuse);
		assert_string_equal(mount.path, expected[i].path);
	}
	assert_false(ss_mounts_next(&cursor, end, &mount));
}

TEST(test_connection)
{
	static const char text[] =
		"pos:\t0\nflags:\t02\nmnt_id:\t15\nfuse_connection:\t52\n";
	struct ss_fdinfo info;

	assert_true(ss_fdinfo_parse(text, strlen(text), &info));
	assert_true(info.has_connection);
	assert_int_equal(info.connection, 52);
}
