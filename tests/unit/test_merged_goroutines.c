#include "merged_sample.h"

#define PROBLEM "goroutines are not shown: the list changed (go1.22)"

enum { COUNT = 3 };

/* A snapshot whose goroutines wait in one function each: `stay`, then `leak` of them. */
static struct ss_snapshot *new_snapshot(uint64_t stay, uint64_t leak)
{
	struct ss_snapshot *snapshot = sample_new();

	for (uint64_t id = 1; id <= stay + leak; id++) {
		struct ss_task *slot =
			ss_vector_push(&snapshot->tasks[SS_TASK_GOROUTINE]);
		const struct ss_frame frame =
			sample_frame(snapshot, SAMPLE_PROGRAM, id <= stay ? 0x10 : 0x20,
				     id <= stay ? "main.stay" : "main.leak");
		assert_non_null(slot);
		*slot = (struct ss_task){ .kind = SS_TASK_GOROUTINE,
					  .name = "",
					  .id = id,
					  .status = SS_STATUS_WAITING,
					  .wait_reason = "chan receive",
					  .end = SS_END_ROOT,
					  .frame_count = 1 };
		assert_true(ss_snapshot_add_stack(snapshot, &frame, 1, SS_END_ROOT,
						  &slot->stack_id));
	}
	return snapshot;
}

static void assert_text(const struct ss_snapshots *snapshots, bool changes, size_t groups,
			bool as_json, const char *wanted)
{
	sample_expect_merged(snapshots, SS_TASK_GOROUTINE, changes, groups, as_json,
			     wanted);
}

static void assert_no_text(const struct ss_snapshots *snapshots, bool changes,
			   const char *unwanted)
{
	_cleanup_free_ char *text = sample_render_merged(snapshots, SS_TASK_GOROUTINE,
							 changes, SIZE_MAX, false);

	if (strstr(text, unwanted))
		fail_msg("'%s' is in: %s", unwanted, text);
}

/* A snapshot in the middle, and the first one, have none: they are left out and counted. */
TEST(test_series)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *a = new_snapshot(7, 2);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *b = new_snapshot(0, 0);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *c = new_snapshot(7, 3);
	const struct ss_snapshot *items[COUNT] = { a, b, c };
	const struct ss_snapshots snapshots = { .items = items, .count = COUNT };

	b->coverage[SS_TASK_GOROUTINE].problem = PROBLEM;
	c->coverage[SS_TASK_GOROUTINE].unread = 500;
	assert_text(
		&snapshots, false, 10, false,
		"10 goroutines, 9 in the first snapshot; those on no thread: 2 groups; "
		"up to 500 more could not be read; not read in 1 of 3 snapshots\n");
	assert_text(&snapshots, false, 10, false, PROBLEM);
	assert_text(&snapshots, false, 10, false,
		    "in all snapshots: 7 goroutines, chan receive");
	assert_text(&snapshots, false, 10, false,
		    "in all snapshots, 2 to 3: 3 goroutines, chan receive");
	assert_text(&snapshots, false, 10, true,
		    "\"snapshots\":2,\"last\":2,\"least\":7,\"most\":7,\"count_first\":7,"
		    "\"count_last\":7,\"count_same\":7");
	assert_text(&snapshots, false, 10, true,
		    "\"goroutines_problem\":\"" PROBLEM "\"");
	assert_text(&snapshots, false, 1, false,
		    "3 more goroutines in 1 group; --goroutines=all shows them");
	items[0] = b;
	items[1] = a;
	assert_text(&snapshots, false, 10, true, "\"count_first\":7,\"count_last\":7");
	assert_text(&snapshots, false, 10, false, "not read in 1 of 3 snapshots\n");
	assert_text(&snapshots, false, 0, false, "");
	assert_text(&snapshots, false, 0, true, "\"goroutines\":null");
}

/* What was not read is neither new nor gone. */
TEST(test_changes)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *a = new_snapshot(7, 1);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *b = new_snapshot(0, 0);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *c = new_snapshot(7, 1);
	const struct ss_snapshot *items[] = { a, b };
	const struct ss_snapshots snapshots = { .items = items, .count = 2 };

	assert_text(&snapshots, true, 10, false, "not read in the second snapshot\n");
	assert_no_text(&snapshots, true, "gone");
	assert_text(&snapshots, true, 10, true, "\"goroutines\":null");
	assert_text(&snapshots, true, 10, true, "not read in the second snapshot\"");
	b->coverage[SS_TASK_GOROUTINE].problem = PROBLEM;
	assert_text(&snapshots, true, 10, false, PROBLEM);
	assert_text(&snapshots, true, 10, true, PROBLEM);
	assert_text(&snapshots, true, 0, false, "");
	items[0] = b;
	items[1] = a;
	assert_text(&snapshots, true, 10, false, "not read in the first snapshot\n");
	assert_no_text(&snapshots, true, "new");
	items[0] = c;
	assert_text(&snapshots, true, 10, false,
		    "unchanged: 8 goroutines in 2 groups; -a shows them\n");
	for (size_t i = 0; i < c->tasks[SS_TASK_GOROUTINE].count; i++)
		c->tasks[SS_TASK_GOROUTINE].items[i].id += 4;
	assert_text(&snapshots, true, SIZE_MAX, false,
		    "as many as before, of which 3 remain: 7 goroutines");
	assert_text(&snapshots, true, SIZE_MAX, true, "\"change\":\"unchanged\"");
	items[0] = items[1] = b;
	b->coverage[SS_TASK_GOROUTINE].problem = NULL;
	assert_text(&snapshots, true, 10, false, "");
}

/* Two runtimes of Go in one process, with the same ids and functions. */
TEST(test_several)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *a = new_snapshot(6, 0);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *b = new_snapshot(6, 0);
	const struct ss_snapshot *items[] = { a, b };
	const struct ss_snapshots snapshots = { .items = items, .count = 2 };

	for (size_t i = 0; i < a->tasks[SS_TASK_GOROUTINE].count; i++) {
		struct ss_task *first = &a->tasks[SS_TASK_GOROUTINE].items[i];
		struct ss_task *last = &b->tasks[SS_TASK_GOROUTINE].items[i];
		first->id = last->id = 1 + i / 2;
		first->runtime = i % 2 ? "/x/libb.so" : "/x/liba.so";
		last->runtime = "/x/liba.so";
	}
	items[1] = a;
	assert_text(&snapshots, false, 10, false,
		    "in all snapshots: 3 goroutines of liba.so, chan receive: 1-3\n");
	assert_text(&snapshots, false, 10, false,
		    "in all snapshots: 3 goroutines of libb.so, chan receive: 1-3\n");
	assert_text(&snapshots, false, 10, true, "\"count_same\":3,\"ids\":[1,2,3],");
	assert_text(&snapshots, false, 10, true, "\"runtime\":\"/x/libb.so\"");
	/* They are told apart in snapshots that have only one, too. */
	items[1] = b;
	assert_text(&snapshots, true, 10, true, "\"change\":\"gone\"");
	items[0] = b;
	assert_no_text(&snapshots, false, "goroutines of ");
}
