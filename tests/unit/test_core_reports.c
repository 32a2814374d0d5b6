#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "crash/cli/core.h"

enum { RATE = 100, USER = 4711, OTHER = 4712, SYSTEM = 7, KIB = 1 << 10 };

static char directory[PATH_MAX];

static int setup(void **state)
{
	char here[PATH_MAX - 32];

	(void)state;
	if (!getcwd(here, sizeof(here)))
		return -1;
	(void)snprintf(directory, sizeof(directory), "%s/core_reports.XXXXXX", here);
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r '%s'", directory);
	return system(command);
}

/* Below a directory that others can write to, there is nothing to test. */
static struct ss_core_reports open_reports(void)
{
	struct ss_core_reports reports = SS_CORE_REPORTS_NONE;
	_cleanup_error_ struct ss_error *error =
		ss_core_reports_open(directory, &reports);

	if (error && ss_error_code(error) == SS_ERROR_DENIED)
		skip();
	assert_null(error);
	return reports;
}

static bool begin_of(const struct ss_core_reports *reports, uid_t uid, unsigned rate,
		     unsigned handlers)
{
	_cleanup_error_ struct ss_error *error =
		ss_core_reports_begin(reports, uid, rate, handlers);

	return !error;
}

static bool begin(const struct ss_core_reports *reports, uid_t uid, unsigned rate)
{
	return begin_of(reports, uid, rate, SS_CORE_HANDLERS_MAX);
}

static uint64_t refused(void)
{
	uint64_t count = 0;
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0 && ss_core_reports_read_refused(fd, &count));
	(void)close(fd);
	return count;
}

/* What has begun counts, for each user. */
TEST_WITH(test_rate, setup, teardown)
{
	for (int i = 0; i < 3; i++) {
		struct ss_core_reports reports = open_reports();
		assert_int_equal(begin(&reports, USER, 2), i < 2);
		ss_core_reports_close(&reports);
	}
	struct ss_core_reports reports = open_reports();
	assert_true(begin(&reports, OTHER, 2));
	assert_int_equal(refused(), 1);
	ss_core_reports_close(&reports);
}

/* One user has some of the slots, all users one half, and the system the other one. */
TEST_WITH(test_slots, setup, teardown)
{
	static const struct {
		uid_t uid;
		unsigned slots;
	} users[] = { { USER, 4 }, { OTHER, 4 }, { OTHER + 1, 0 }, { SYSTEM, 4 } };
	struct ss_core_reports open[SS_CORE_HANDLERS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < SS_ARRAY_SIZE(users); i++) {
		for (unsigned j = 0; j < 5; j++) {
			struct ss_core_reports reports = open_reports();
			bool begun = begin(&reports, users[i].uid, RATE);
			assert_int_equal(begun, j < users[i].slots);
			if (begun)
				open[count++] = reports;
			else
				ss_core_reports_close(&reports);
		}
	}
	assert_int_equal(refused(), 1 + 1 + 5 + 1);
	ss_core_reports_close(&open[0]);
	struct ss_core_reports reports = open_reports();
	assert_true(begin(&reports, USER, RATE));
	ss_core_reports_close(&reports);
	for (size_t i = 1; i < count; i++)
		ss_core_reports_close(&open[i]);
}

/* All handlers together have a quarter of the memory, but there are always four. */
TEST(test_limits)
{
	static const struct {
		uint64_t memory; /* MiB */
		unsigned handlers;
		uint64_t process_memory;
	} machines[] = {
		{ 0, 4, 256 },	   { 512, 4, 256 },    { 8192, 4, 256 },
		{ 12288, 6, 256 }, { 14336, 6, 256 },  { 24576, 8, 384 },
		{ 32768, 8, 512 }, { 65536, 16, 512 }, { 1 << 20, 16, 512 },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(machines); i++) {
		struct ss_core_limits limits =
			ss_core_reports_limits(machines[i].memory * KIB * KIB);
		assert_int_equal(limits.handlers, machines[i].handlers);
		assert_int_equal(limits.process_memory,
				 machines[i].process_memory * KIB * KIB);
	}
}

/* A small machine has two slots for each kind of user. */
TEST_WITH(test_few_slots, setup, teardown)
{
	static const struct {
		uid_t uid;
		bool begun;
	} crashes[] = { { USER, true },	  { USER, true },   { OTHER, false },
			{ SYSTEM, true }, { SYSTEM, true }, { SYSTEM, false } };
	struct ss_core_reports reports[SS_ARRAY_SIZE(crashes)];

	for (size_t i = 0; i < SS_ARRAY_SIZE(crashes); i++) {
		reports[i] = open_reports();
		assert_int_equal(begin_of(&reports[i], crashes[i].uid, RATE, 4),
				 crashes[i].begun);
	}
	for (size_t i = 0; i < SS_ARRAY_SIZE(crashes); i++)
		ss_core_reports_close(&reports[i]);
}

static void add(const struct ss_core_reports *reports, uid_t uid, unsigned pid,
		off_t size)
{
	const struct timespec times[] = { { .tv_sec = pid }, { .tv_sec = pid } };
	char name[64];

	(void)snprintf(name, sizeof(name), "crash-x-%u-%u-1.json", uid, pid);
	int fd = openat(reports->directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_return_code(ftruncate(fd, size), 0);
	assert_return_code(futimens(fd, times), 0);
	(void)close(fd);
}

static bool exists(const struct ss_core_reports *reports, uid_t uid, unsigned pid)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "crash-x-%u-%u-1.json", uid, pid);
	return faccessat(reports->directory, name, F_OK, 0) == 0;
}

/* A user who writes more and more removes his own reports only. */
TEST_WITH(test_flood, setup, teardown)
{
	struct ss_core_reports reports = open_reports();

	add(&reports, OTHER, 1, 120 * KIB);
	add(&reports, SYSTEM, 1, 120 * KIB);
	for (unsigned pid = 2; pid < 30; pid++) {
		add(&reports, USER, pid, 20 * KIB);
		ss_core_reports_expire(&reports, KIB * KIB);
	}
	for (unsigned pid = 2; pid < 30; pid++)
		assert_int_equal(exists(&reports, USER, pid), pid >= 30 - 6);
	assert_true(exists(&reports, OTHER, 1) && exists(&reports, SYSTEM, 1));
	ss_core_reports_close(&reports);
}

/* Of many users, those who have most lose, and never those of the system. */
TEST_WITH(test_many_users, setup, teardown)
{
	struct ss_core_reports reports = open_reports();

	add(&reports, OTHER, 1, 20 * KIB);
	add(&reports, SYSTEM, 1, 120 * KIB);
	for (uid_t uid = 10000; uid < 10012; uid++) {
		for (unsigned pid = 2; pid < 8; pid++)
			add(&reports, uid, pid, 20 * KIB);
	}
	ss_core_reports_expire(&reports, KIB * KIB);
	assert_true(exists(&reports, OTHER, 1) && exists(&reports, SYSTEM, 1));
	unsigned left = 0;
	for (uid_t uid = 10000; uid < 10012; uid++) {
		for (unsigned pid = 2; pid < 8; pid++)
			left += exists(&reports, uid, pid);
	}
	assert_in_range(left, 20, (512 - 20) / 20);
	ss_core_reports_close(&reports);
}

TEST(test_names)
{
	static const struct {
		const char *name;
		bool written;
	} names[] = {
		{ "crash-x-12-3-4.json", true },
		{ "crash-a-1-2-3-12-3-4.text", true },
		{ "crash-12-3-4.json", true },
		{ "crash-x-3-4.json", false },
		{ "crash-x-12-3-4", false },
		{ "notes-12-3-4.json", false },
		{ "crash-", false },
		{ ".json", false },
	};
	struct stat status = { .st_mode = S_IFREG, .st_uid = USER, .st_nlink = 1 };
	uid_t uid = 0;

	for (size_t i = 0; i < SS_ARRAY_SIZE(names); i++) {
		assert_int_equal(
			ss_core_reports_has_written(names[i].name, &status, USER, &uid),
			names[i].written);
		assert_false(
			ss_core_reports_has_written(names[i].name, &status, OTHER, &uid));
	}
	assert_int_equal(uid, 12);
	status.st_nlink = 2;
	assert_false(ss_core_reports_has_written(names[0].name, &status, USER, &uid));
}
