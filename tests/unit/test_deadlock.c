/*
 * Deadlocks and blockers in hand-made snapshots, and the verdict on a process.
 */
#include "unit.h"

#include <stdlib.h>

#include "diagnose/diagnose.h"
#include "diagnose/progress.h"
#include "data/pipeline.h"

enum { THREADS = 5, FIRST_TID = 100 };

/* Thread number i waits for a lock of thread owners[i], or for none (-1). */
static struct ss_snapshot *make(const int *owners, const unsigned *rounds)
{
	struct ss_snapshot *snapshot = ss_snapshot_new();

	assert_non_null(snapshot);
	snapshot->facts = ss_facts_new();
	snapshot->waits = calloc(THREADS, sizeof(*snapshot->waits));
	assert_true(snapshot->facts && snapshot->waits);
	for (int i = 0; i < THREADS; i++) {
		struct ss_task *thread = ss_vector_push(&snapshot->tasks[SS_TASK_THREAD]);
		struct ss_thread_facts *facts = ss_vector_push(&snapshot->facts->threads);
		assert_true(thread && facts);
		*thread = (struct ss_task){ .tid = FIRST_TID + i, .state = 'S' };
		facts->tid = thread->tid;
		facts->call.number = -1;
		facts->freeze_round = rounds[i];
		if (owners[i] < 0)
			continue;
		snapshot->waits[i] =
			(struct ss_wait){ .kind = SS_WAIT_MUTEX,
					  .address = 0x1000u + (unsigned)owners[i],
					  .owner_tid = FIRST_TID + owners[i] };
		thread->wait = &snapshot->waits[i];
	}
	assert_true(ss_deadlock_find(snapshot));
	return snapshot;
}

TEST(test_cycle)
{
	const int owners[] = { 1, 2, 0, 0, -1 };
	const unsigned rounds[] = { 2, 2, 2, 2, 2 };
	struct ss_snapshot *snapshot = make(owners, rounds);

	assert_int_equal(ss_snapshot_deadlock_count(snapshot), 1);
	const struct ss_deadlock *deadlock = ss_snapshot_deadlock(snapshot, 0);
	assert_int_equal(deadlock->count, 3);
	assert_int_equal(deadlock->behind, 1);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(deadlock->threads[i], i);
	assert_int_equal(ss_snapshot_blocker_count(snapshot), 0);
	ss_snapshot_free(snapshot);
}

/* Two threads that wait for each other, and were stopped in these freeze rounds. */
static void check_rounds(unsigned first, unsigned second, size_t deadlocks)
{
	const int owners[] = { 1, 0, -1, -1, -1 };
	const unsigned rounds[] = { first, second, 1, 1, 1 };
	struct ss_snapshot *snapshot = make(owners, rounds);

	assert_int_equal(ss_snapshot_deadlock_count(snapshot), deadlocks);
	ss_snapshot_free(snapshot);
}

TEST(test_freeze_rounds)
{
	check_rounds(2, 2, 1);
	check_rounds(1, 1, 1);
	check_rounds(1, 2, 0);
	check_rounds(2, 4, 0);
	check_rounds(2, 3, 0);
	check_rounds(0, 0, 0); /* they were not stopped */
}

/* Captured in different rounds, and checked again together. */
TEST(test_unchanged)
{
	const int owners[] = { 1, 2, 0, -1, -1 };
	const unsigned rounds[] = { 2, 4, 0, 1, 1 };
	struct ss_snapshot *snapshot = make(owners, rounds);

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ss_snapshot_deadlock_count(snapshot), 0);
		snapshot->facts->threads.items[i].unchanged = true;
		assert_true(ss_deadlock_find(snapshot));
	}
	assert_int_equal(ss_snapshot_deadlock_count(snapshot), 1);
	assert_int_equal(ss_snapshot_deadlock(snapshot, 0)->count, 3);
	ss_snapshot_free(snapshot);
}

TEST(test_blockers)
{
	const int owners[] = { 4, 0, 4, 4, -1 };
	const unsigned rounds[] = { 2, 2, 2, 2, 1 };
	struct ss_snapshot *snapshot = make(owners, rounds);

	assert_int_equal(ss_snapshot_deadlock_count(snapshot), 0);
	assert_int_equal(ss_snapshot_blocker_count(snapshot), 1);
	const struct ss_blocker *blocker = ss_snapshot_blocker(snapshot, 0);
	assert_int_equal(blocker->thread, 4);
	assert_int_equal(blocker->waiting, 4);
	assert_int_equal(blocker->locks, 2);
	ss_snapshot_free(snapshot);
}

static struct ss_activity *make_activity(uint64_t time_ns, uint64_t runs, uint64_t run_ns)
{
	struct ss_activity *activity = calloc(1, sizeof(*activity));

	assert_non_null(activity);
	activity->time_ns = time_ns;
	for (int i = 0; i < THREADS; i++) {
		struct ss_thread_activity *thread = ss_vector_push(&activity->threads);
		assert_non_null(thread);
		*thread = (struct ss_thread_activity){ .tid = FIRST_TID + i,
						       .state = 'S',
						       .counted = true,
						       .runs = 7 + (i == 4 ? runs : 0),
						       .run_ns = i == 4 ? run_ns : 0 };
	}
	return activity;
}

/* The verdict if only the last thread ran, this often and this long. Takes the snapshot over. */
static enum ss_verdict judge_snapshot(struct ss_snapshot *snapshot, uint64_t elapsed_ns,
				      uint64_t runs, uint64_t run_ns)
{
	const struct ss_snapshot *snapshots[] = { snapshot };
	struct ss_activity *before = make_activity(1000, 0, 0);
	struct ss_activity *after = make_activity(1000 + elapsed_ns, runs, run_ns);
	struct ss_progress *progress = NULL;

	for (size_t i = 0; i < THREADS; i++) {
		struct ss_frame frame = { .pc = i + 1, .symbol = "f" };
		struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		thread->frame_count = 1;
		assert_true(ss_snapshot_add_stack(snapshot, &frame, 1, SS_END_ROOT,
						  &thread->stack_id));
	}
	assert_null(ss_progress_new(before, after, snapshots, 1, &progress));
	enum ss_verdict verdict = progress->verdict;
	ss_progress_free(progress);
	ss_activity_free(before);
	ss_activity_free(after);
	ss_snapshot_free(snapshot);
	return verdict;
}

static enum ss_verdict judge(const int *owners, uint64_t runs, uint64_t run_ns)
{
	const unsigned rounds[] = { 2, 2, 2, 2, 2 };

	return judge_snapshot(make(owners, rounds), 2000 * 1000, runs, run_ns);
}

TEST(test_verdicts)
{
	const int cycle[] = { 1, 0, -1, -1, -1 };
	const int behind[] = { 4, 4, -1, -1, -1 };
	const int nobody[] = { -1, -1, -1, -1, -1 };

	assert_int_equal(judge(cycle, 0, 0), SS_VERDICT_DEADLOCK);
	assert_int_equal(judge(cycle, 3, 1900000), SS_VERDICT_DEADLOCK);
	assert_int_equal(judge(behind, 0, 0), SS_VERDICT_STUCK);
	/* The owner runs: the waiters are not stuck. */
	assert_int_equal(judge(behind, 3, 1900000), SS_VERDICT_BUSY);
	assert_int_equal(judge(behind, 3, 1000), SS_VERDICT_IDLE);
	assert_int_equal(judge(nobody, 0, 0), SS_VERDICT_IDLE);
	assert_int_equal(judge(nobody, 9, 1900000), SS_VERDICT_BUSY);
	/* It was on a CPU all the time, and was scheduled once. */
	assert_int_equal(judge(nobody, 0, 1900000), SS_VERDICT_BUSY);
	assert_int_equal(judge(behind, 0, 1900000), SS_VERDICT_BUSY);
}

/* The last thread waits for a lock of the application, whose holder is not known, for two seconds. */
static enum ss_verdict judge_application_lock(bool timed, uint64_t runs)
{
	const int owners[] = { -1, -1, -1, -1, -1 };
	const unsigned rounds[] = { 2, 2, 2, 2, 2 };
	struct ss_snapshot *snapshot = make(owners, rounds);
	struct ss_wait *wait = &snapshot->waits[4];

	*wait = (struct ss_wait){ .kind = SS_WAIT_CONDVAR,
				  .purpose = SS_PURPOSE_LOCK,
				  .timed = timed };
	snapshot->tasks[SS_TASK_THREAD].items[4].wait = wait;
	return judge_snapshot(snapshot, UINT64_C(2000) * 1000 * 1000, runs, 1000);
}

TEST(test_application_locks)
{
	assert_int_equal(judge_application_lock(false, 0), SS_VERDICT_BLOCKED);
	assert_int_equal(judge_application_lock(false, 1), SS_VERDICT_BLOCKED);
	/* Who waits without a limit, and was woken twice, had the lock in between. */
	assert_int_equal(judge_application_lock(false, 2), SS_VERDICT_IDLE);
	/* It looks again and again. */
	assert_int_equal(judge_application_lock(true, 20), SS_VERDICT_BLOCKED);
	assert_int_equal(judge_application_lock(true, 200), SS_VERDICT_IDLE);
}

TEST(test_names)
{
	assert_string_equal(ss_verdict_name(SS_VERDICT_STUCK), "stuck");
	assert_string_equal(ss_verdict_name((enum ss_verdict)99), "unknown");
	assert_string_equal(ss_movement_name(SS_MOVEMENT_WOKEN), "woken");
	assert_string_equal(ss_movement_name((enum ss_movement)99), "unknown");
}
