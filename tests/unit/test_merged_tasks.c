#include "merged_sample.h"
#include "task_sample.h"

enum { COUNT = 3 };

static void assert_text(const struct ss_snapshots *snapshots, size_t groups, bool as_json,
			const char *wanted)
{
	sample_expect_merged(snapshots, SS_TASK_ASYNCIO, false, groups, as_json, wanted);
}

/* Two tasks that fetch in changing lines, one that passes, and two that wait for tasks. */
static struct ss_snapshot *make(size_t index)
{
	struct ss_snapshot *snapshot = sample_new();
	static const size_t awaited[] = { 0, 1 };

	snapshot->coverage[SS_TASK_ASYNCIO].known = true;
	for (uint64_t i = 0; i < (index == 0 ? 1 : 2); i++)
		sample_add_task(snapshot, i ? "fetch-2" : "fetch-1", 0x10 + i,
				SS_STATUS_WAITING, "fetch", (uint32_t)(5 + index));
	if (index == 1)
		sample_add_task(snapshot, "passes", 0x20, SS_STATUS_RUNNABLE, "fetch", 5);
	for (uint64_t i = 0; i < 2; i++) {
		struct ss_task *task =
			sample_add_task(snapshot, i ? "waits-2" : "waits-1", 0x30 + i,
					SS_STATUS_WAITING, "join", 30);
		task->awaited = awaited;
		task->awaited_count = index == 0 || i == 0 ? 1 : 2;
		task->wait_reason = "_GatheringFuture";
	}
	return snapshot;
}

TEST(test_merged)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *a = make(0);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *b = make(1);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *c = make(2);
	const struct ss_snapshot *items[COUNT] = { a, b, c };
	const struct ss_snapshots snapshots = { .items = items, .count = COUNT };

	b->coverage[SS_TASK_ASYNCIO].unread = 7;
	assert_text(&snapshots, 20, false,
		    "\n4 asyncio tasks, 3 in the first snapshot; 3 groups; up to 7 "
		    "more could not be read\n");
	/* The line is that of the last snapshot. */
	assert_text(&snapshots, 20, false,
		    "\nin all snapshots, 1 to 2: 2 tasks, waiting for Future, event loop "
		    "of thread 100: fetch-1, fetch-2\n"
		    "  #0  fetch at /srv/shop.py:7 [python]\n  #1  main at "
		    "/srv/shop.py:9 [python]\n");
	assert_text(&snapshots, 20, false,
		    "\nin 1 of 3 snapshots: 1 task, runnable, event loop of thread 100: "
		    "passes\n");
	assert_text(&snapshots, 20, false,
		    "\nin all snapshots: 2 tasks, waiting for other tasks, event loop of "
		    "thread 100: waits-1, waits-2\n");
	assert_text(&snapshots, 2, false,
		    "\n1 more task in 1 group; --tasks=all shows it\n");
	assert_text(&snapshots, 20, true,
		    "{\"snapshots\":3,\"last\":2,\"least\":1,\"most\":2,"
		    "\"count_first\":1,\"count_last\":2,\"count_same\":1,\"names\":["
		    "\"fetch-1\",\"fetch-2\"]");
	assert_text(&snapshots, 20, true, "\"status\":\"waiting\",");
}

TEST(test_none)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_snapshot *items[] = { snapshot, snapshot };
	const struct ss_snapshots snapshots = { .items = items, .count = 2 };

	assert_text(&snapshots, 20, false, "");
	assert_text(&snapshots, 20, true, "\"tasks\":null,\"tasks_problem\":null");
	snapshot->coverage[SS_TASK_ASYNCIO].problem = "asyncio tasks are not shown: no";
	assert_text(&snapshots, 20, false, "\nasyncio tasks are not shown: no\n");
}
