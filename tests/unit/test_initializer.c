/*
 * Which thread initialises what others wait for, in hand-made snapshots.
 */
#include "view_sample.h"

#include <stdlib.h>

#include "diagnose/lock.h"

enum { WORD = 0x5000, WAITER = 0, OTHER = 1, THIRD = 2 };

/* A thread whose stack has these functions, the innermost first, up to NULL. */
static void add(struct ss_snapshot *snapshot, enum ss_lock_type waits_for,
		const char *const *functions)
{
	struct ss_frame frames[8];
	const size_t index = snapshot->tasks[SS_TASK_THREAD].count;
	size_t count = 0;

	for (; functions[count]; count++)
		frames[count] = sample_frame(
			snapshot,
			strncmp(functions[count], "__", 2) == 0 ? SAMPLE_LIBC :
								  SAMPLE_PROGRAM,
			0x100 * (index + 1) + count, functions[count]);
	struct ss_task *thread = sample_add_thread(snapshot, 100 + (pid_t)index, "shop",
						   frames, count, SS_END_ROOT);
	if (!snapshot->waits)
		snapshot->waits = calloc(4, sizeof(*snapshot->waits));
	assert_non_null(snapshot->waits);
	struct ss_wait *wait = &snapshot->waits[index];
	*wait = (struct ss_wait){ .kind = SS_WAIT_JOIN, .lock = SS_LOCK_THREAD };
	if (waits_for)
		*wait = (struct ss_wait){ .kind = SS_WAIT_ONCE,
					  .lock = waits_for,
					  .address = WORD,
					  .owner_unknown = SS_OWNER_NOT_RECORDED };
	thread->wait = wait;
}

#define ADD(snapshot, lock, ...)                                                         \
	add(snapshot, lock, (const char *const[]){ __VA_ARGS__, NULL })

static void refer(struct ss_snapshot *snapshot, uint32_t thread, uint32_t frame,
		  uint8_t calls)
{
	struct ss_lock_reference *reference = ss_vector_push(&snapshot->references);

	assert_non_null(reference);
	*reference = (struct ss_lock_reference){ .futex = WORD,
						 .thread = thread,
						 .frame = frame,
						 .exact = true,
						 .calls = calls };
}

static pid_t owner(struct ss_snapshot *snapshot)
{
	ss_initializers_find(snapshot);
	return snapshot->waits[WAITER].owner_tid;
}

TEST(test_once)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	ADD(snapshot, SS_LOCK_ONCE, "__pthread_once_slow", "user", "main");
	ADD(snapshot, SS_LOCK_NONE, "__join", "setup", "__pthread_once_slow", "main");
	/* Another one that waits, too, and one that is within another call. */
	ADD(snapshot, SS_LOCK_ONCE, "__pthread_once_slow", "user", "main");
	ADD(snapshot, SS_LOCK_NONE, "__join", "setup", "__pthread_once_slow", "main");
	refer(snapshot, WAITER, 0, 0);
	refer(snapshot, WAITER, 1, 1);
	refer(snapshot, OTHER, 2, 0);
	refer(snapshot, THIRD, 0, 0);
	refer(snapshot, THIRD, 1, 0);
	assert_int_equal(owner(snapshot), 101);
	assert_int_equal(snapshot->waits[THIRD].owner_tid, 101);
	assert_int_equal(snapshot->waits[WAITER].owner_unknown, SS_OWNER_UNSPECIFIED);
	assert_false(snapshot->waits[WAITER].self_owned);
}

/* Two threads that may be it: neither is named. */
TEST(test_ambiguous)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	ADD(snapshot, SS_LOCK_ONCE, "__pthread_once_slow", "user", "main");
	ADD(snapshot, SS_LOCK_NONE, "__join", "setup", "__pthread_once_slow", "main");
	ADD(snapshot, SS_LOCK_NONE, "__join", "setup", "__pthread_once_slow", "main");
	refer(snapshot, OTHER, 2, 0);
	refer(snapshot, THIRD, 2, 0);
	assert_int_equal(owner(snapshot), 0);
	assert_int_equal(snapshot->waits[WAITER].owner_unknown, SS_OWNER_NOT_RECORDED);
}

/* The routine of pthread_once() calls it again for the same word. */
TEST(test_itself)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	ADD(snapshot, SS_LOCK_ONCE, "__pthread_once_slow", "setup", "__pthread_once_slow",
	    "main");
	refer(snapshot, WAITER, 0, 0);
	refer(snapshot, WAITER, 1, 1);
	refer(snapshot, WAITER, 2, 0);
	assert_int_equal(owner(snapshot), 100);
	assert_true(snapshot->waits[WAITER].self_owned);
}

static struct ss_snapshot *new_static(uint8_t calls)
{
	struct ss_snapshot *snapshot = sample_new();

	ADD(snapshot, SS_LOCK_STATIC_INIT, "__cxa_guard_acquire", "instance", "load",
	    "main");
	ADD(snapshot, SS_LOCK_NONE, "__join", "Config", "instance", "main");
	refer(snapshot, WAITER, 1, 1);
	refer(snapshot, OTHER, 2, calls);
	return snapshot;
}

TEST(test_static)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = new_static(1);

	assert_int_equal(owner(snapshot), 101);
}

/* The function has released the guard already, or is not known to have acquired it. */
TEST(test_released)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *released = new_static(2);
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *unknown = new_static(0);

	assert_int_equal(owner(released), 0);
	assert_int_equal(owner(unknown), 0);
}

/* The thread may be one whose stack is cut. */
TEST(test_incomplete)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = new_static(1);

	ADD(snapshot, SS_LOCK_NONE, "__join");
	snapshot->tasks[SS_TASK_THREAD].items[THIRD].end = SS_END_LIMIT;
	assert_int_equal(owner(snapshot), 0);
}
