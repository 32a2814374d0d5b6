/* What is opened in a child, and what without one. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <unistd.h>

#include "process/files.h"

enum { ITEMS = 3 };

struct log {
	pid_t pids[ITEMS]; /* in which process each item was opened */
	size_t taken;
};

static void note(struct ss_opened *ret)
{
	pid_t pid = getpid();

	memcpy(ret->header, &pid, sizeof(pid));
}

static void work(const struct ss_opener *opener, size_t item, struct ss_opened *ret)
{
	(void)opener;
	(void)item;
	note(ret);
}

static int find_first(const struct ss_opener *opener, size_t item)
{
	(void)opener;
	return item == 0 ? open("/proc/self/exe", O_PATH | O_CLOEXEC) : -1;
}

static int find_any(const struct ss_opener *opener, size_t item)
{
	(void)opener;
	(void)item;
	return open("/proc/self/exe", O_PATH | O_CLOEXEC);
}

static void take(const struct ss_opener *opener, size_t item, struct ss_opened *opened)
{
	struct log *log = opener->data;

	assert_non_null(opened);
	memcpy(&log->pids[item], opened->header, sizeof(log->pids[item]));
	/* Without the child: the file can be read. */
	if (opened->file >= 0) {
		char magic[4];
		assert_int_equal(pread(opened->file, magic, sizeof(magic), 0),
				 sizeof(magic));
		assert_memory_equal(magic, "\177ELF", sizeof(magic));
		assert_true(opened->status.st_size > 0);
		log->pids[item] = getpid();
	}
	log->taken++;
}

static void run(ss_opener_find *find_on_disk, struct log *log)
{
	bool wanted[ITEMS] = { true, false, true };
	struct ss_opener opener = { .work = work,
				    .find_on_disk = find_on_disk,
				    .take = take,
				    .data = log,
				    .wanted = wanted,
				    .count = ITEMS,
				    .keep = { -1, -1, -1, -1, -1, -1, -1, -1 } };

	ss_opener_run(&opener);
	for (size_t i = 0; i < ITEMS; i++)
		assert_false(wanted[i]);
	assert_int_equal(log->taken, 2);
	assert_int_equal(log->pids[1], 0);
}

TEST(test_in_a_child)
{
	struct log log = {};

	run(NULL, &log);
	assert_int_not_equal(log.pids[0], getpid());
	assert_int_equal(log.pids[0], log.pids[2]);
}

TEST(test_files_on_disk_are_opened_here)
{
	struct log log = {};

	run(find_first, &log);
	assert_int_equal(log.pids[0], getpid());
	assert_int_not_equal(log.pids[2], getpid());
	log = (struct log){};
	run(find_any, &log);
	assert_int_equal(log.pids[0], getpid());
	assert_int_equal(log.pids[2], getpid());
}

static void die_in_a_child(const struct ss_opener *opener, size_t item,
			   struct ss_opened *ret)
{
	(void)item;
	if (opener->socket >= 0)
		_exit(1);
	note(ret);
}

static void take_without_answer(const struct ss_opener *opener, size_t item,
				struct ss_opened *opened)
{
	struct log *log = opener->data;

	(void)item;
	assert_null(opened);
	log->taken++;
}

TEST(test_the_child_dies)
{
	struct log log = {};
	bool wanted[ITEMS] = { true, false, true };
	struct ss_opener opener = { .work = die_in_a_child,
				    .take = take,
				    .data = &log,
				    .wanted = wanted,
				    .count = ITEMS,
				    .keep = { -1, -1, -1, -1, -1, -1, -1, -1 } };

	ss_opener_run(&opener);
	assert_int_equal(log.taken, 2);
	assert_int_equal(log.pids[0], getpid());
	assert_int_equal(log.pids[2], getpid());
	log = (struct log){};
	wanted[0] = wanted[2] = true;
	opener.child_only = true;
	opener.take = take_without_answer;
	ss_opener_run(&opener);
	assert_int_equal(log.taken, 2);
	for (size_t i = 0; i < ITEMS; i++)
		assert_false(wanted[i]);
}
