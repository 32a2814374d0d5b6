#include "view_sample.h"

#include "base/cleanup.h"
#include "report/merged.h"

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
static void test_functions_of_runtimes(void **state)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *a = sample_new();
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *b = sample_new();
	const struct ss_snapshot *items[] = { a, b };
	const struct ss_snapshots snapshots = { .items = items, .count = 2 };

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_of_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
