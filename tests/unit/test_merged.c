#include "view_sample.h"

#include "base/cleanup.h"
#include "report/group.h"

static void add_function(struct ss_snapshot *snapshot, pid_t tid, const char *file)
{
	const struct ss_frame frame = { .module_index = -1,
					.kind = SS_FRAME_PYTHON,
					.source = SS_FROM_RUNTIME,
					.symbol = "run",
					.file = file,
					.line = (uint32_t)tid };

	sample_add_thread(snapshot, tid, "worker", &frame, 1, SS_END_ROOT);
}

/* Functions of runtimes have no module: two of one name are the same if their file is. */
TEST(test_functions_of_runtimes)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *a = sample_new();
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *b = sample_new();
	const struct ss_snapshot *items[] = { a, b };
	const struct ss_snapshots snapshots = { .items = items, .count = 2 };

	add_function(a, 100, "a.py");
	add_function(b, 101, "b.py");
	add_function(b, 102, "a.py");
	_cleanup_(ss_merged_cleanup) struct ss_merged *merged =
		ss_merged_new(&snapshots, SS_TASK_THREAD, true);
	assert_non_null(merged);
	if (merged->count != 2)
		fail_msg("%zu stacks", merged->count);
	assert_int_equal(merged->items[0].times, 2);
	assert_int_equal(merged->items[1].times, 1);
}

static void add_waiting(struct ss_snapshot *snapshot, pid_t tid, uint64_t offset,
			struct ss_wait *wait)
{
	const struct ss_frame frame =
		sample_frame(snapshot, SAMPLE_PROGRAM, offset, "work");

	sample_add_thread(snapshot, tid, "worker", &frame, 1, SS_END_ROOT)->wait = wait;
}

/* Places in a function are groups of one snapshot, and one group of a series, whose line is followed
   by the waits of all its threads. */
TEST(test_places)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_snapshot *items[] = { snapshot };
	struct ss_snapshots snapshots = { .items = items, .count = 1 };
	const struct ss_format_options options = { .size = sizeof(options) };
	struct ss_wait first = { .kind = SS_WAIT_MUTEX,
				 .lock = SS_LOCK_MUTEX,
				 .symbol = "stock",
				 .timeout_ns = -1,
				 .left_ns = -1 };
	struct ss_wait second = first;
	char *text = NULL;
	size_t size = 0;

	second.symbol = "orders";
	add_waiting(snapshot, 100, 0x10, &first);
	add_waiting(snapshot, 101, 0x20, &second);
	_cleanup_(ss_merged_cleanup) struct ss_merged *series =
		ss_merged_new(&snapshots, SS_TASK_THREAD, true);
	assert_non_null(series);
	assert_int_equal(series->count, 1);
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	assert_null(ss_format_text.write_snapshots(&snapshots, &options, out));
	assert_int_equal(fclose(out), 0);
	_cleanup_free_ char *owned = text;
	assert_non_null(strstr(owned, "1 waits for mutex stock"));
	assert_non_null(strstr(owned, "1 waits for mutex orders"));
	snapshots.kind = SS_SNAPSHOTS_ONE;
	_cleanup_(ss_merged_cleanup) struct ss_merged *one =
		ss_merged_new(&snapshots, SS_TASK_THREAD, true);
	assert_non_null(one);
	assert_int_equal(one->count, 2);
	snapshot->tasks[SS_TASK_THREAD].items[0].wait = NULL;
	snapshot->tasks[SS_TASK_THREAD].items[1].wait = NULL;
}
