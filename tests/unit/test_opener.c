/* What is opened in a child, and what without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "target/opener.h"

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

static bool try_first(const struct ss_opener *opener, size_t item, struct ss_opened *ret)
{
	(void)opener;
	note(ret);
	return item == 0;
}

static bool try_any(const struct ss_opener *opener, size_t item, struct ss_opened *ret)
{
	(void)opener;
	(void)item;
	note(ret);
	return true;
}

static void take(const struct ss_opener *opener, size_t item, struct ss_opened *opened)
{
	struct log *log = opener->data;

	assert_non_null(opened);
	memcpy(&log->pids[item], opened->header, sizeof(log->pids[item]));
	log->taken++;
}

static void run(ss_opener_try *try_here, struct log *log)
{
	bool wanted[ITEMS] = { true, false, true };
	struct ss_opener opener = { .work = work,
				    .try_here = try_here,
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

static void test_in_a_child(void **state)
{
	struct log log = {};

	(void)state;
	run(NULL, &log);
	assert_int_not_equal(log.pids[0], getpid());
	assert_int_equal(log.pids[0], log.pids[2]);
}

static void test_what_cannot_block_is_opened_here(void **state)
{
	struct log log = {};

	(void)state;
	run(try_first, &log);
	assert_int_equal(log.pids[0], getpid());
	assert_int_not_equal(log.pids[2], getpid());
	log = (struct log){};
	run(try_any, &log);
	assert_int_equal(log.pids[0], getpid());
	assert_int_equal(log.pids[2], getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_a_child),
		cmocka_unit_test(test_what_cannot_block_is_opened_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
