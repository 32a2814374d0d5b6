#include "task_sample.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "report/diff.h"
#include "report/json.h"
#include "report/text.h"

static const struct ss_task_change *find(const struct ss_diff *diff, const char *name)
{
	for (size_t i = 0; i < diff->count; i++) {
		const struct ss_task_change *change = &diff->items[i];
		if (strcmp(ss_change_task(change)->name, name) == 0)
			return change;
	}
	fail_msg("%s is missing", name);
	return NULL;
}

static char *render(const struct ss_diff_input *input, size_t groups, bool as_json)
{
	const struct ss_format_options options = {
		.size = sizeof(options), .groups = { [SS_TASK_ASYNCIO] = groups }
	};
	_cleanup_(ss_diff_cleanup) struct ss_diff *threads =
		ss_diff_new(input, SS_TASK_THREAD, NULL);
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct ss_json json = { .out = out };

	assert_non_null(threads);
	assert_non_null(out);
	if (as_json)
		assert_true(ss_json_task_diff(&json, input, threads, &options));
	else
		assert_null(ss_text_write_task_diff(input, threads, &options, out));
	assert_int_equal(fclose(out), 0);
	return text;
}

static void assert_text(const struct ss_diff_input *input, size_t groups, bool as_json,
			const char *wanted)
{
	_cleanup_free_ char *text = render(input, groups, as_json);

	if (*wanted ? !strstr(text, wanted) : *text != '\0')
		fail_msg("'%s' is not in: %s", wanted, text);
}

#define READY SS_STATUS_RUNNABLE
#define WAITS SS_STATUS_WAITING
#define RUNS SS_STATUS_RUNNING

/* By name: what each task does in the two snapshots, and its change. */
static const struct {
	const char *name;
	uint64_t addresses[2]; /* 0: it is not there */
	enum ss_task_status statuses[2];
	uint32_t lines[2];
	enum ss_change change;
} cases[] = {
	{ "fetch-1", { 0x10, 0x10 }, { WAITS, WAITS }, { 5, 5 }, SS_UNCHANGED },
	{ "fetch-2", { 0x20, 0x20 }, { WAITS, WAITS }, { 5, 5 }, SS_UNCHANGED },
	{ "fetch-3", { 0x30, 0x30 }, { WAITS, WAITS }, { 5, 7 }, SS_MOVED },
	{ "fetch-4", { 0x40, 0x40 }, { READY, WAITS }, { 5, 5 }, SS_UNCHANGED },
	/* It runs in one of them: where, its thread shows. */
	{ "fetch-5", { 0x50, 0x50 }, { RUNS, WAITS }, { 5, 5 }, SS_MOVED },
	{ "fetch-6", { 0, 0x60 }, { WAITS, WAITS }, { 5, 5 }, SS_NEW },
	{ "fetch-7", { 0x70, 0 }, { WAITS, WAITS }, { 5, 5 }, SS_GONE },
};

static struct ss_snapshot *make(size_t side)
{
	struct ss_snapshot *snapshot = sample_new();

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		if (cases[i].addresses[side])
			sample_add_task(snapshot, cases[i].name, cases[i].addresses[side],
					cases[i].statuses[side], "fetch",
					cases[i].lines[side]);
	}
	return snapshot;
}

TEST(test_changes)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before = make(0);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after = make(1);
	const struct ss_diff_input input = { .before.snapshot = before,
					     .after.snapshot = after };
	_cleanup_(ss_diff_cleanup) struct ss_diff *threads =
		ss_diff_new(&input, SS_TASK_THREAD, NULL);
	_cleanup_(ss_diff_cleanup) struct ss_diff *diff =
		ss_diff_new(&input, SS_TASK_ASYNCIO, threads);

	assert_non_null(diff);
	assert_null(diff->problem);
	assert_int_equal(diff->count, SS_ARRAY_SIZE(cases));
	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		if (find(diff, cases[i].name)->change != cases[i].change)
			fail_msg("%s: %s", cases[i].name,
				 ss_change_name(find(diff, cases[i].name)->change));
	}
	assert_int_equal(diff->counts[SS_UNCHANGED], 3);
	assert_int_equal(find(diff, "fetch-3")->common, 1);
	for (size_t i = 1; i < diff->count; i++)
		assert_true(diff->items[i].change >= diff->items[i - 1].change);
	assert_text(&input, 20, false,
		    "\n6 asyncio tasks: 3 unchanged, 2 moved, 1 new, 1 gone\n"
		    "\nunchanged: 2 tasks, waiting for Future, event loop of thread 100: "
		    "fetch-1, fetch-2\n"
		    "  #0  fetch at /srv/shop.py:5 [python]\n  #1  main at "
		    "/srv/shop.py:9 [python]\n");
	assert_text(
		&input, 20, false,
		"\nunchanged: 1 task, waiting for Future, event loop of thread 100, was "
		"runnable: fetch-4\n");
	assert_text(&input, 20, false,
		    "\nmoved: 1 task, waiting for Future, event loop of thread 100: "
		    "fetch-3\n    was in fetch at /srv/shop.py:5\n    is in fetch at "
		    "/srv/shop.py:7\n    both below main at /srv/shop.py:9\n");
	assert_text(&input, 20, false,
		    "\nmoved: 1 task, waiting for Future, event loop of thread 100, was "
		    "running: fetch-5\n  #0  fetch at ");
	assert_text(&input, 20, false, "\nnew: 1 task, ");
	assert_text(&input, 20, false, "\ngone: 1 task, ");
	/* Groups of each part */
	assert_text(&input, 1, false, "\n1 more task in 1 group; --tasks=all shows it\n");
	assert_text(&input, 0, false, "");
	assert_text(&input, 20, true,
		    "{\"change\":\"gone\",\"name\":\"fetch-7\",\"address\":\"0x70\",");
}

/* What is at the address of a task that has ended is another task, if it has another name. */
TEST(test_reused_address)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before = sample_new();
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after = sample_new();
	const struct ss_diff_input input = { .before.snapshot = before,
					     .after.snapshot = after };

	sample_add_task(before, "Task-1", 0x10, SS_STATUS_RUNNABLE, "fetch", 5);
	sample_add_task(after, "Task-2", 0x10, SS_STATUS_RUNNABLE, "fetch", 5);
	sample_add_task(before, "worker", 0x20, SS_STATUS_RUNNABLE, "fetch", 5);
	sample_add_task(after, "worker", 0x30, SS_STATUS_RUNNABLE, "fetch", 5);
	assert_text(&input, 20, false,
		    "\n2 asyncio tasks: 0 unchanged, 0 moved, 2 new, 2 gone\n");
}

/* Of a task that runs, the thread tells whether it has moved. */
TEST(test_running)
{
	for (uint32_t line = 20; line <= 21; line++) {
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before = sample_new();
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after = sample_new();
		const struct ss_diff_input input = { .before.snapshot = before,
						     .after.snapshot = after };
		const struct ss_frame frames[] = { sample_coroutine("sleep", 20),
						   sample_coroutine("sleep", line) };
		sample_add_thread(before, SAMPLE_LOOP, "shop", &frames[0], 1,
				  SS_END_ROOT);
		sample_add_thread(after, SAMPLE_LOOP, "shop", &frames[1], 1, SS_END_ROOT);
		sample_add_task(before, "Task-1", 0x10, SS_STATUS_RUNNING, "fetch", 0);
		sample_add_task(after, "Task-1", 0x10, SS_STATUS_RUNNING, "fetch", 0);
		assert_text(&input, 20, false,
			    line == 20 ? "\nunchanged: 1 task, running, on thread 100" :
					 "\nmoved: 1 task, running, on thread 100");
	}
}

/* What was not read is not gone. */
TEST(test_not_read)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *before = make(0);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *after = sample_new();
	const struct ss_diff_input input = { .before.snapshot = before,
					     .after.snapshot = after };

	before->coverage[SS_TASK_ASYNCIO].changed = 2;
	after->coverage[SS_TASK_ASYNCIO].unread = 1;
	assert_text(&input, 20, false,
		    "\n0 asyncio tasks: 0 unchanged, 0 moved, 0 new, 6 gone\n"
		    "2 asyncio tasks could not be read in the first snapshot\n"
		    "1 asyncio task could not be read in the second snapshot: some that "
		    "are gone may still exist\n");
	before->coverage[SS_TASK_ASYNCIO].known = true;
	assert_text(&input, 20, false,
		    "\nasyncio tasks are not compared: they were not read in the "
		    "second snapshot\n");
	assert_text(&input, 20, true, "\"tasks\":[],\"tasks_problem\":\"asyncio tasks ");
	assert_text(&input, 0, true, "\"tasks\":[],\"tasks_problem\":null");
	after->coverage[SS_TASK_ASYNCIO].known = true;
	after->coverage[SS_TASK_ASYNCIO].problem = "asyncio tasks are not shown: no";
	assert_text(&input, 20, false, "\nasyncio tasks are not shown: no\n");
}
