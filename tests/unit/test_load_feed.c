/* Which process gets what it has loaded, and which loads are taken. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/module.h"
#include "sample/modules.h"

static struct ss_mmap_event made(uint64_t time_ns, uint64_t start)
{
	struct ss_mmap_event event = {
		.pid = 7, .time_ns = time_ns, .start = start, .size = 0x1000
	};

	strcpy(event.path, "/made/up.so");
	return event;
}

TEST(test_loads_in_order)
{
	struct ss_module_loads loads = {};
	const struct ss_mmap_event events[] = { made(30, 0x3000), made(10, 0x1000),
						made(20, 0x1000), made(40, 0x1000) };
	const struct ss_module module = { .base = 0x1000, .size = 0x1000 };

	for (size_t i = 0; i < SS_ARRAY_SIZE(events); i++)
		assert_true(ss_module_loads_add(&loads, &events[i]));
	assert_int_equal(loads.last_ns, 40);
	assert_int_equal(ss_module_loads_first(&loads, &module), 10);
	/* The last load in its place before it was seen is its own. */
	assert_int_equal(ss_module_loads_date(&loads, &module, 40), 20);
	assert_int_equal(loads.pending.count, 3);
	struct ss_mmap_event *taken = ss_module_loads_take(&loads, 25);
	assert_non_null(taken);
	assert_int_equal(taken->time_ns, 10);
	assert_string_equal(taken->path, "/made/up.so");
	free(taken);
	assert_null(ss_module_loads_take(&loads, 25));
	/* It was loaded while it was looked for. */
	assert_int_equal(ss_module_loads_date(&loads, &module, 35), 40);
	assert_int_equal(ss_module_loads_first(&loads, &module), 0);
	assert_int_equal(ss_module_loads_date(&loads, &module, 50), 0);
	assert_int_equal(loads.last_ns, 40);
	ss_module_loads_close(&loads);
}

/* Where something was mapped since a time; everywhere, if that is no longer known. */
TEST(test_covered)
{
	struct ss_module_loads loads = {};
	struct ss_mmap_event event = made(30, 0x3000);

	assert_true(ss_module_loads_add(&loads, &event));
	assert_true(ss_module_loads_covered(&loads, 0x3000, 30));
	assert_true(ss_module_loads_covered(&loads, 0x3fff, 20));
	assert_false(ss_module_loads_covered(&loads, 0x3fff, 31));
	assert_false(ss_module_loads_covered(&loads, 0x2fff, 20));
	assert_false(ss_module_loads_covered(&loads, 0x4000, 20));
	for (uint64_t i = 0; i < SS_RECENT_LOADS; i++) {
		event = made(40 + i, 0x5000);
		assert_true(ss_module_loads_add(&loads, &event));
	}
	assert_true(ss_module_loads_covered(&loads, 0x1000, 30));
	assert_false(ss_module_loads_covered(&loads, 0x1000, 31));
	ss_module_loads_close(&loads);
}

/* Code that a program makes may take the place of a module that was unloaded. */
TEST(test_anonymous_code)
{
	struct ss_mmap_event event = made(30, 0x3000);
	struct ss_module_loads loads = {};
	struct ss_load_feed feed = {};

	event.anonymous = true;
	assert_true(ss_module_loads_add(&loads, &event));
	assert_int_equal(loads.last_ns, 0);
	assert_int_equal(loads.last_code_ns, 30);
	assert_int_equal(loads.pending.count, 0);
	int errnum = ss_load_feed_open(&feed);
	if (errnum) {
		print_message("perf_event_open(2): %s\n", strerror(errnum));
		skip();
	}
	assert_true(ss_load_feed_add(&feed, getpid(), &loads));
	const uint64_t added_ns = loads.last_code_ns;
	/* Data is not reported until it may be executed. */
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	assert_true(page != MAP_FAILED);
	assert_true(ss_load_feed_read(&feed));
	assert_int_equal(loads.last_code_ns, added_ns);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	assert_true(ss_load_feed_read(&feed));
	assert_true(loads.last_code_ns > added_ns);
	assert_int_equal(loads.last_ns, added_ns);
	assert_int_equal(loads.pending.count, 0);
	assert_int_equal(munmap(page, 4096), 0);
	ss_load_feed_close(&feed);
	ss_module_loads_close(&loads);
}

/* What a process has mapped before it was added is not known: a child is added after it has begun to
   run. */
TEST(test_added_later)
{
	struct ss_load_feed feed = {};
	struct ss_module_loads loads = {};
	const uint64_t before_ns = ss_now_ns();

	assert_true(ss_load_feed_add(&feed, 7, &loads));
	assert_true(loads.last_ns >= before_ns && loads.last_code_ns >= before_ns);
	assert_true(ss_module_loads_covered(&loads, 0x1000, before_ns));
	assert_false(ss_module_loads_covered(&loads, 0x1000, ss_now_ns() + 1));
	ss_load_feed_close(&feed);
}

TEST(test_readers)
{
	struct ss_load_feed feed = {};
	struct ss_module_loads a = {};
	struct ss_module_loads b = {};

	assert_true(ss_load_feed_add(&feed, 7, &a));
	assert_true(ss_load_feed_add(&feed, 8, &b));
	a.last_ns = b.last_ns = 0;
	/* Lost records may be of any process. */
	feed.lost = 1;
	assert_true(ss_load_feed_read(&feed));
	assert_true(a.last_ns > 0 && b.last_ns > 0);
	a.last_ns = b.last_ns = 0;
	assert_true(ss_load_feed_read(&feed));
	assert_int_equal(a.last_ns + b.last_ns, 0);
	ss_load_feed_remove(&feed, &a);
	feed.lost = 2;
	assert_true(ss_load_feed_read(&feed));
	assert_int_equal(a.last_ns, 0);
	assert_true(b.last_ns > 0);
	ss_load_feed_close(&feed);
}
