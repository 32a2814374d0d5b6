#include "view_sample.h"

#include "report/group.h"

static const struct ss_task *thread_at(const struct ss_snapshot *snapshot, size_t index)
{
	return ss_snapshot_task(snapshot, SS_TASK_THREAD, index);
}

TEST(test_main_first_then_the_smallest)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame a = sample_frame(snapshot, SAMPLE_LIBC, 1, NULL);
	const struct ss_frame b = sample_frame(snapshot, SAMPLE_LIBC, 2, NULL);
	const struct ss_frame c = sample_frame(snapshot, SAMPLE_LIBC, 3, NULL);

	sample_add_thread(snapshot, 98, "w", &a, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 99, "w", &b, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 100, "main", &c, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 101, "w", &b, 1, SS_END_ROOT);
	sample_add_thread(snapshot, 102, "w", &b, 1, SS_END_LIMIT);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);
	assert_int_equal(grouping->count, 4);
	assert_true(grouping->groups[0].has_main);
	assert_ptr_equal(grouping->groups[0].members[0], thread_at(snapshot, 2));
	assert_ptr_equal(grouping->groups[1].members[0], thread_at(snapshot, 0));
	assert_ptr_equal(grouping->groups[2].members[0], thread_at(snapshot, 4));
	assert_int_equal(grouping->groups[3].count, 2);
	assert_ptr_equal(grouping->groups[3].members[0], thread_at(snapshot, 1));
	assert_ptr_equal(grouping->groups[3].members[1], thread_at(snapshot, 3));
}

static void add_waiting(struct ss_snapshot *snapshot, pid_t tid, uint64_t pc,
			const struct ss_wait *wait)
{
	const struct ss_frame frame = sample_frame(snapshot, SAMPLE_LIBC, pc, NULL);

	sample_add_thread(snapshot, tid, "w", &frame, 1, SS_END_ROOT)->wait = wait;
}

static void assert_order(const struct ss_snapshot *snapshot, const pid_t *wanted,
			 size_t count)
{
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);

	assert_int_equal(grouping->count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(grouping->groups[i].members[0]->tid, wanted[i]);
	}
}

/* Who waits for a lock is seen before who waits for work; also the main thread has to wait
   its turn. */
TEST(test_classes)
{
	static const struct ss_wait idle = { .kind = SS_WAIT_CONDVAR };
	static const struct ss_wait listens = { .kind = SS_WAIT_EPOLL };
	static const struct ss_wait lock = { .kind = SS_WAIT_MUTEX, .owner_tid = 108 };
	static const struct ss_wait uring = { .kind = SS_WAIT_IO,
					      .syscall = "io_getevents" };
	static const struct ss_wait disk = { .kind = SS_WAIT_IO, .syscall = "fsync" };
	static const pid_t wanted[] = { 103, 104, 108, 110, 109, 106, 100, 107, 101 };
	static const size_t cycle[] = { 2 };
	static const struct ss_deadlock deadlock = { .threads = cycle, .count = 1 };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	add_waiting(snapshot, 100, 1, &listens); /* main */
	add_waiting(snapshot, 101, 2, &idle);
	add_waiting(snapshot, 103, 8, &lock); /* in a deadlock */
	add_waiting(snapshot, 102, 2, &idle);
	add_waiting(snapshot, 104, 3, &lock);
	add_waiting(snapshot, 105, 3, &lock);
	add_waiting(snapshot, 106, 4, &disk);
	add_waiting(snapshot, 107, 5, &uring);
	add_waiting(snapshot, 108, 6, &idle); /* owns the lock */
	add_waiting(snapshot, 109, 7, &disk);
	snapshot->tasks[SS_TASK_THREAD].items[9].state = 'D';
	add_waiting(snapshot, 110, 9, NULL);
	snapshot->tasks[SS_TASK_THREAD].items[10].state = 'R';
	struct ss_deadlock *slot = ss_vector_push(&snapshot->deadlocks);
	assert_non_null(slot);
	*slot = deadlock;
	assert_order(snapshot, wanted, SS_ARRAY_SIZE(wanted));
}

/* What the table of wait functions says counts more than the kind of the wait. */
TEST(test_purposes)
{
	static const struct ss_wait lock = { .kind = SS_WAIT_CONDVAR,
					     .purpose = SS_PURPOSE_LOCK };
	static const struct ss_wait service = { .kind = SS_WAIT_MUTEX,
						.purpose = SS_PURPOSE_SERVICE };
	static const struct ss_wait disk = { .kind = SS_WAIT_IO, .syscall = "fsync" };
	static const pid_t wanted[] = { 103, 102, 101 };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	add_waiting(snapshot, 101, 1, &service);
	add_waiting(snapshot, 102, 2, &disk);
	add_waiting(snapshot, 103, 3, &lock);
	assert_order(snapshot, wanted, SS_ARRAY_SIZE(wanted));
}

/* The lock that most threads wait for comes first, wherever they wait. */
TEST(test_most_waiters_first)
{
	static const struct ss_wait one = { .kind = SS_WAIT_MUTEX, .address = 0x10 };
	static const struct ss_wait two = { .kind = SS_WAIT_RWLOCK, .address = 0x20 };
	static const struct ss_wait three = { .kind = SS_WAIT_MUTEX, .address = 0x30 };
	static const pid_t wanted[] = { 104, 106, 102, 101 };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	add_waiting(snapshot, 101, 1, &three);
	add_waiting(snapshot, 102, 2, &one);
	add_waiting(snapshot, 103, 2, &one);
	add_waiting(snapshot, 104, 3, &two);
	add_waiting(snapshot, 105, 3, &two);
	add_waiting(snapshot, 106, 4, &two);
	assert_order(snapshot, wanted, SS_ARRAY_SIZE(wanted));
}

/* Who waits for its turn to wait for work comes last, unless somebody else waits for such a thread. */
TEST(test_turns)
{
	static const struct ss_wait idle = { .kind = SS_WAIT_CONDVAR };
	static const struct ss_wait lock = { .kind = SS_WAIT_MUTEX,
					     .address = 0x10,
					     .owner_tid = 100 };
	static const pid_t pool[] = { 102, 101, 100 };
	static const pid_t with_other[] = { 103, 100, 102, 101 };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	sample_add_waiting(snapshot, 100, 1, "take_request", &idle);
	sample_add_waiting(snapshot, 101, 2, "take_request", &lock);
	sample_add_waiting(snapshot, 102, 3, "answer_request", &idle);
	assert_order(snapshot, pool, SS_ARRAY_SIZE(pool));
	sample_add_waiting(snapshot, 103, 4, "end_request", &lock);
	assert_order(snapshot, with_other, SS_ARRAY_SIZE(with_other));
}

/* Of the program's threads, those come last whose wait ends by itself: a sleep of the main thread. */
TEST(test_sleep)
{
	static const struct ss_wait sleeps = { .kind = SS_WAIT_SLEEP, .timed = true };
	static const struct ss_wait waits = { .kind = SS_WAIT_CONDVAR };
	static const pid_t wanted[] = { 101, 100 };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame frame = sample_frame(snapshot, SAMPLE_NOWHERE, 1, "work");

	frame.kind = SS_FRAME_PYTHON;
	frame.file = "/srv/work.py";
	frame.line = 1;
	sample_add_thread(snapshot, 100, "w", &frame, 1, SS_END_ROOT)->wait = &sleeps;
	frame.line = 2;
	sample_add_thread(snapshot, 101, "w", &frame, 1, SS_END_ROOT)->wait = &waits;
	assert_order(snapshot, wanted, SS_ARRAY_SIZE(wanted));
}

/* What an interpreter executes is not on the stack: such threads are not one group. */
TEST(test_interpreters_stay_apart)
{
	static const struct ss_wait idle = { .kind = SS_WAIT_SLEEP };
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	const struct ss_frame python[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 1, "clock_nanosleep"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 2, "_PyEval_EvalFrameDefault"),
	};
	const struct ss_frame other = sample_frame(snapshot, SAMPLE_LIBC, 3, "poll");

	sample_add_thread(snapshot, 101, "a", python, 2, SS_END_ROOT)->wait = &idle;
	sample_add_thread(snapshot, 102, "n", &other, 1, SS_END_ROOT)->wait = &idle;
	sample_add_thread(snapshot, 103, "b", python, 2, SS_END_ROOT)->wait = &idle;
	sample_add_thread(snapshot, 104, "n", &other, 1, SS_END_ROOT)->wait = &idle;
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);
	assert_int_equal(grouping->count, 3);
	assert_ptr_equal(grouping->groups[0].members[0], thread_at(snapshot, 0));
	assert_false(grouping->groups[0].like_previous);
	assert_ptr_equal(grouping->groups[1].members[0], thread_at(snapshot, 2));
	assert_true(grouping->groups[1].like_previous);
	assert_int_equal(grouping->groups[2].count, 2);
	assert_false(grouping->groups[2].like_previous);
}

/* Threads of Java with equal stacks are one group if a perf map names each method. */
TEST(test_perf_map)
{
	static const struct {
		const char *method;
		size_t groups;
	} cases[] = { { "void shop.Pool.take()", 1 }, { "Interpreter", 2 }, { NULL, 2 } };

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot =
			sample_new();
		struct ss_frame java[] = {
			sample_frame(snapshot, SAMPLE_LIBC, 1, "pthread_cond_wait"),
			sample_frame(snapshot, SAMPLE_NOWHERE, 2, cases[i].method),
			sample_frame(snapshot, SAMPLE_PROGRAM, 3,
				     "JavaCalls::call_helper(JavaValue*)"),
		};
		java[1].area = "[jit]";
		sample_add_thread(snapshot, 101, "a", java, 3, SS_END_ROOT);
		sample_add_thread(snapshot, 102, "b", java, 3, SS_END_ROOT);
		_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
			ss_grouping_new(snapshot, SS_TASK_THREAD, true);
		assert_int_equal(grouping->count, cases[i].groups);
	}
}

TEST(test_reasons_keep_threads_apart)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	sample_add_thread(snapshot, 1, "w", NULL, 0, SS_END_TRACED)->reason = "by gdb";
	sample_add_thread(snapshot, 2, "w", NULL, 0, SS_END_TRACED);
	sample_add_thread(snapshot, 3, "w", NULL, 0, SS_END_TRACED)->reason = "by gdb";
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);
	assert_int_equal(grouping->count, 2);
	assert_int_equal(grouping->groups[1].count, 2);
}

TEST(test_not_merged)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	sample_add_thread(snapshot, 99, "w", NULL, 0, SS_END_ROOT);
	sample_add_thread(snapshot, 100, "w", NULL, 0, SS_END_ROOT);
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, false);
	assert_int_equal(grouping->count, 2);
	assert_ptr_equal(grouping->groups[0].members[0], thread_at(snapshot, 0));
	assert_false(grouping->groups[0].has_main);
	assert_true(grouping->groups[1].has_main);
}

TEST(test_no_threads)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	_cleanup_(ss_grouping_cleanup) struct ss_grouping *grouping =
		ss_grouping_new(snapshot, SS_TASK_THREAD, true);

	assert_int_equal(grouping->count, 0);
}
