/*
 * The state machine of a sampled thread, event by event.
 */

#include "unit.h"

#include "sample/thread_list.h"

/* A thread that was captured while it was blocked with that run count. */
static struct ss_sampled_thread idle_thread(uint64_t count)
{
	struct ss_sampled_thread thread = { .tid = 1, .schedstat_fd = -1 };

	assert_true(ss_thread_update(&thread, count, 0));
	assert_true(thread.due);
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, count),
			 SS_THREAD_CAPTURE);
	ss_thread_end_capture(&thread, false, true, count);
	ss_thread_accept(&thread, false, false);
	assert_int_equal(thread.state, SS_THREAD_IDLE);
	return thread;
}

/* The same, of which a register is missing. */
static struct ss_sampled_thread unfinished_thread(uint64_t count)
{
	struct ss_sampled_thread thread = { .tid = 1, .schedstat_fd = -1 };

	(void)ss_thread_update(&thread, count, 0);
	(void)ss_thread_begin_capture(&thread, true, false, count);
	ss_thread_end_capture(&thread, false, true, count);
	ss_thread_accept(&thread, false, true);
	assert_int_equal(thread.state, SS_THREAD_STOP_NEXT);
	return thread;
}

static void next_tick(struct ss_sampled_thread *thread, uint64_t count)
{
	ss_thread_begin_tick(thread);
	(void)ss_thread_update(thread, count, 0);
}

TEST(test_sleeping)
{
	struct ss_sampled_thread thread = idle_thread(5);

	for (int i = 0; i < 300; i++) {
		next_tick(&thread, 5);
		assert_false(thread.due);
	}
	assert_true(thread.quiet_ticks >= 100);
	assert_true(ss_thread_is_unchanged(&thread, 5));
	assert_false(ss_thread_is_unchanged(&thread, 6));
	assert_false(ss_thread_is_unchanged(&thread, 0));
}

TEST(test_wakes_up)
{
	struct ss_sampled_thread thread = idle_thread(5);

	next_tick(&thread, 6);
	assert_true(thread.due);
	assert_int_equal(thread.state, SS_THREAD_ACTIVE);
	assert_int_equal(thread.quiet_ticks, 0);
	assert_int_equal(ss_thread_begin_capture(&thread, false, false, 6),
			 SS_THREAD_CAPTURE);
	/* It ran: it is captured at each tick, also if its count stays the same. */
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_accept(&thread, true, false);
	assert_int_equal(thread.state, SS_THREAD_ACTIVE);
	next_tick(&thread, 6);
	assert_true(thread.due);
}

TEST(test_kernel_that_does_not_count)
{
	struct ss_sampled_thread thread = { .tid = 1, .schedstat_fd = -1 };

	for (int i = 0; i < 3; i++) {
		ss_thread_begin_tick(&thread);
		assert_true(ss_thread_update(&thread, 0, 0));
		assert_true(thread.due);
		assert_int_equal(ss_thread_begin_capture(&thread, true, false, 0),
				 SS_THREAD_CAPTURE);
		ss_thread_end_capture(&thread, false, true, 0);
		ss_thread_accept(&thread, false, false);
	}
}

TEST(test_register)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	next_tick(&thread, 5);
	assert_true(thread.due);
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 5),
			 SS_THREAD_STOP);
	ss_thread_stop(&thread, true, 6);
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_accept(&thread, true, false);
	assert_int_equal(thread.state, SS_THREAD_RETURNING);
	/* Its release put it on a CPU once more, and it is blocked as before. */
	next_tick(&thread, 7);
	assert_true(thread.due);
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 7),
			 SS_THREAD_SKIP);
	assert_int_equal(thread.state, SS_THREAD_IDLE);
	assert_false(thread.due);
	next_tick(&thread, 7);
	assert_false(thread.due);
}

TEST(test_register_of_a_running_thread)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	next_tick(&thread, 6); /* before the stop */
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 6),
			 SS_THREAD_CAPTURE);
	ss_thread_end_capture(&thread, false, true, 6);
	ss_thread_accept(&thread, false, false);
	assert_int_equal(thread.state, SS_THREAD_IDLE);

	thread = unfinished_thread(5);
	next_tick(&thread, 5);
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 5),
			 SS_THREAD_STOP);
	ss_thread_stop(&thread, true, 6);
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_accept(&thread, true, false);
	next_tick(&thread, 8); /* after it */
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 8),
			 SS_THREAD_CAPTURE);
	assert_int_equal(thread.state, SS_THREAD_ACTIVE);
}

TEST(test_never_stopped_in_a_fragile_call)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	next_tick(&thread, 5);
	assert_int_equal(ss_thread_begin_capture(&thread, true, true, 5),
			 SS_THREAD_CAPTURE);
}

TEST(test_stop_of_unknown_count)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	next_tick(&thread, 5);
	(void)ss_thread_begin_capture(&thread, true, false, 5);
	ss_thread_stop(&thread, true, 0);
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_accept(&thread, true, false);
	assert_int_equal(thread.state, SS_THREAD_ACTIVE);
}

/* Modules changed between the capture and the check: it is stopped again, at the count
   that the first stop left. */
TEST(test_stopped_twice_in_a_tick)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	next_tick(&thread, 5);
	(void)ss_thread_begin_capture(&thread, true, false, 5);
	ss_thread_stop(&thread, true, 6);
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_reject(&thread, true);
	assert_true(thread.due);
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 7),
			 SS_THREAD_STOP);
	ss_thread_stop(&thread, true, 8);
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_accept(&thread, true, false);
	assert_int_equal(thread.state, SS_THREAD_RETURNING);
	assert_int_equal(thread.expected_count, 9);
}

/* What runtimes need was not copied in the stop: it is captured again, not skipped. */
TEST(test_rejected_after_a_stop)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	next_tick(&thread, 5);
	(void)ss_thread_begin_capture(&thread, true, false, 5);
	ss_thread_stop(&thread, true, 6);
	ss_thread_end_capture(&thread, true, false, 0);
	ss_thread_accept(&thread, true, false);
	assert_int_equal(thread.state, SS_THREAD_RETURNING);
	ss_thread_reject(&thread, true);
	assert_true(thread.due);
	assert_int_equal(ss_thread_begin_capture(&thread, true, false, 7),
			 SS_THREAD_CAPTURE);
}

TEST(test_rejected)
{
	struct ss_sampled_thread thread = idle_thread(5);

	ss_thread_reject(&thread, false);
	assert_int_equal(thread.state, SS_THREAD_ACTIVE);
	assert_false(thread.due);
	next_tick(&thread, 5);
	assert_true(thread.due);
}

TEST(test_ends)
{
	struct ss_sampled_thread thread = unfinished_thread(5);

	ss_thread_end(&thread);
	ss_thread_begin_tick(&thread);
	assert_false(ss_thread_update(&thread, 6, 0));
	assert_false(thread.due);
	ss_thread_end_capture(&thread, true, true, 6);
	ss_thread_reject(&thread, true);
	assert_int_equal(thread.state, SS_THREAD_GONE);
}

struct mapped {
	uint64_t changed; /* the area that is another one */
	unsigned asked;
};

static bool is_mapped(void *data, uint64_t address)
{
	struct mapped *mapped = data;

	mapped->asked++;
	return address >> 12 != mapped->changed >> 12;
}

TEST(test_area_check)
{
	struct ss_area_check areas = {};
	struct mapped mapped = { .changed = 0x3000 };
	uint64_t starts[SS_AREA_CHECK_MAX + 3];

	for (size_t i = 0; i < SS_AREA_CHECK_MAX + 3; i++)
		starts[i] = (i + 1) * 0x1000;
	ss_area_check_run(&areas, 0x1234, 0x1000, is_mapped, &mapped);
	assert_true(ss_area_check_contains(&areas, 0x1000));
	assert_false(ss_area_check_contains(&areas, 0x2000));
	ss_area_check_remember(&areas, starts, SS_AREA_CHECK_MAX + 3);
	assert_int_equal(areas.count, SS_AREA_CHECK_MAX);
	mapped.asked = 0;
	ss_area_check_run(&areas, 0x1234, 0x1000, is_mapped, &mapped);
	assert_int_equal(mapped.asked, SS_AREA_CHECK_MAX); /* that of the pc once */
	assert_true(ss_area_check_contains(&areas, 0x2000));
	assert_false(ss_area_check_contains(&areas, 0x3000));
	assert_false(ss_area_check_contains(&areas, starts[SS_AREA_CHECK_MAX]));
	/* New areas first; earlier ones fill the remaining slots. */
	ss_area_check_remember(&areas, (const uint64_t[]){ 0x9000, 0x2000 }, 2);
	assert_int_equal(areas.starts[0], 0x9000);
	assert_int_equal(areas.starts[1], 0x2000);
	assert_int_equal(areas.starts[2], 0x1000);
	/* No area at the pc (0): address 0 is not verified. */
	ss_area_check_clear(&areas);
	ss_area_check_run(&areas, 0x5, 0, is_mapped, &mapped);
	assert_false(ss_area_check_contains(&areas, 0));
}
