/*
 * Functions of a program in its own language (Python, Java, JavaScript) in what is said about
 * locks and progress, in hand-made snapshots.
 */
#include "view_sample.h"

#include <stdlib.h>

#include "diagnose/progress.h"
#include "diagnose/diagnose.h"
#include "data/snapshot.h"
#include "diagnose/wait_table.h"

enum { FRAMES_MAX = 12 };

/* A Java thread: these methods, the innermost first, between native frames. */
static struct ss_task *add(struct ss_snapshot *snapshot, pid_t tid,
			   enum ss_wait_kind kind, const char *const *methods)
{
	struct ss_frame frames[FRAMES_MAX];
	size_t count = 0;

	frames[count++] = sample_frame(snapshot, SAMPLE_LIBC, 0x10, "pthread_cond_wait");
	for (; *methods; methods++)
		frames[count++] = sample_function(SS_FRAME_JAVA, *methods, "J.java", 7);
	frames[count++] =
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, "JavaCalls::call_helper");
	frames[count++] = sample_frame(snapshot, SAMPLE_LIBC, 0x30, "start_thread");
	struct ss_task *thread =
		sample_add_thread(snapshot, tid, "shop", frames, count, SS_END_ROOT);
	snapshot->waits = realloc(snapshot->waits, snapshot->tasks[SS_TASK_THREAD].count *
							   sizeof(*snapshot->waits));
	assert_non_null(snapshot->waits);
	snapshot->waits[snapshot->tasks[SS_TASK_THREAD].count - 1] =
		(struct ss_wait){ .kind = kind };
	return thread;
}

#define ADD(snapshot, tid, ...)                                                          \
	add(snapshot, tid, SS_WAIT_CONDVAR, (const char *const[]){ __VA_ARGS__, NULL })

static void set_waits(struct ss_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++)
		snapshot->tasks[SS_TASK_THREAD].items[i].wait = &snapshot->waits[i];
}

static void find_locks(struct ss_snapshot *snapshot)
{
	struct ss_wait_table *table = NULL;

	set_waits(snapshot);
	assert_null(ss_wait_table_new(&table));
	assert_true(ss_purposes_find(snapshot, table));
	assert_true(ss_application_locks_find(snapshot));
	ss_wait_table_free(table);
}

TEST(test_library)
{
	static const struct {
		enum ss_frame_kind kind;
		const char *symbol, *file;
		bool library;
	} cases[] = {
		{ SS_FRAME_NATIVE, "java.lang.Thread.run", NULL, false },
		{ SS_FRAME_JAVA, "java.lang.Thread.run", "Thread.java", true },
		{ SS_FRAME_JAVA, "javassist.Loader.run", "Loader.java", false },
		{ SS_FRAME_JAVA, "shop.java.Cart.run", NULL, false },
		{ SS_FRAME_PYTHON, "Queue.get", "/usr/lib/python3.11/queue.py", true },
		{ SS_FRAME_PYTHON, "run", "/opt/lib/python3.13/asyncio/runners.py",
		  true },
		{ SS_FRAME_PYTHON, "_find", "<frozen importlib._bootstrap>", true },
		{ SS_FRAME_PYTHON, "f", "/v/lib/python3.11/site-packages/f.py", false },
		{ SS_FRAME_PYTHON, "f", "/usr/lib/python3/dist-packages/f.py", false },
		{ SS_FRAME_PYTHON, "f", "/home/python3.11-tests/f.py", false },
		{ SS_FRAME_PYTHON, "f", "<string>", false },
		{ SS_FRAME_PYTHON, "f", NULL, false },
		{ SS_FRAME_JAVASCRIPT, "listOnTimeout", "node:internal/timers", true },
		{ SS_FRAME_JAVASCRIPT, "Array.map", NULL, true },
		{ SS_FRAME_JAVASCRIPT, "f", "/srv/node.js", false },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		const struct ss_frame frame =
			sample_function(cases[i].kind, cases[i].symbol, cases[i].file, 7);
		if (ss_frame_is_of_library(&frame) != cases[i].library)
			fail_msg("%s at %s", cases[i].symbol, cases[i].file);
	}
}

/* A function of the program counts, and neither one of the virtual machine nor one that every
   thread of Java has. */
TEST(test_suspects)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	ADD(snapshot, 100, "java.util.concurrent.locks.ReentrantLock.lock", "J.take",
	    "J.work", "java.lang.Thread.run");
	ADD(snapshot, 101, "J.other", "java.lang.Thread.run");
	find_locks(snapshot);
	assert_int_equal(snapshot->application_locks.count, 1);
	assert_int_equal(snapshot->application_locks.items[0].suspects_total, 0);
	ss_snapshot_free(take_ptr(snapshot));

	snapshot = sample_new();
	ADD(snapshot, 100, "java.util.concurrent.locks.ReentrantLock.lock", "J.take",
	    "J.work", "java.lang.Thread.run");
	ADD(snapshot, 101, "J.other", "java.lang.Thread.run");
	ADD(snapshot, 102, "J.pay", "J.work", "java.lang.Thread.run");
	find_locks(snapshot);
	const struct ss_application_lock *lock = &snapshot->application_locks.items[0];
	assert_int_equal(lock->suspects_total, 1);
	assert_int_equal(lock->suspects[0], 2);
	assert_string_equal(lock->common_function, "J.work");
}

/* The stacks have a native function in common that is further in. */
TEST(test_within)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_activity activity = {};
	struct ss_progress *progress = NULL;

	ADD(snapshot, 100, "J.work", "java.lang.Thread.run");
	const struct ss_snapshot *snapshots[] = { snapshot, snapshot };
	assert_null(ss_progress_new(&activity, &activity, snapshots, 2, &progress));
	assert_string_equal(ss_progress_thread(progress, 0)->within, "J.work");
	assert_int_equal(ss_progress_thread(progress, 0)->samples, 2);
	ss_progress_free(progress);
}

/* Where a thread was that was not stopped in the last snapshot. */
TEST(test_seen)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *last = sample_new();
	struct ss_activity activity = {};
	struct ss_progress *progress = NULL;

	ADD(snapshot, 100, "J.work", "java.lang.Thread.run");
	ADD(last, 100, "J.work");
	last->tasks[SS_TASK_THREAD].items[0].frame_count = 0;
	const struct ss_snapshot *snapshots[] = { snapshot, snapshot, last };
	assert_null(ss_progress_new(&activity, &activity, snapshots, 3, &progress));
	assert_int_equal(ss_progress_thread(progress, 0)->samples, 2);
	assert_ptr_equal(ss_progress_thread(progress, 0)->seen_in, snapshot);
	assert_ptr_equal(ss_progress_thread(progress, 0)->seen,
			 ss_snapshot_find_thread(snapshot, 100));
	ss_progress_free(progress);
}

/* Inlined functions of the language count as frames that refer to locks, since only inlined
   native calls are inserted later. */
TEST(test_owner_frames)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame frames[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "pthread_mutex_lock"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x20, "inlined"),
		sample_function(SS_FRAME_JAVA, "J.inlined", "J.java", 7),
		sample_function(SS_FRAME_JAVA, "J.native", "J.java", 7),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "owns"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x40, "main"),
	};

	frames[1].inlined = frames[2].inlined = true;
	snapshot->facts = ss_facts_new();
	snapshot->waits = calloc(2, sizeof(*snapshot->waits));
	assert_true(snapshot->facts && snapshot->waits);
	for (pid_t tid = 100; tid < 102; tid++) {
		struct ss_thread_facts *facts = ss_vector_push(&snapshot->facts->threads);
		assert_non_null(facts);
		facts->tid = tid;
		facts->call = (struct ss_syscall){ .number = 202,
						   .id = SS_SYS_FUTEX,
						   .args = { 0x1000 } };
		sample_add_thread(snapshot, tid, "shop", frames, SS_ARRAY_SIZE(frames),
				  SS_END_ROOT);
		snapshot->waits[tid - 100] =
			(struct ss_wait){ .kind = SS_WAIT_MUTEX, .owner_tid = 201 - tid };
	}
	set_waits(snapshot);
	struct ss_lock_reference *reference = ss_vector_push(&snapshot->references);
	assert_non_null(reference);
	/* Without "inlined", the frames are: pthread_mutex_lock 0, J.inlined 1, J.native 2,
	   owns 3, main 4. */
	*reference =
		(struct ss_lock_reference){ .futex = 0x1000, .thread = 1, .frame = 3 };
	ss_owner_frames_find(snapshot);
	assert_int_equal(snapshot->waits[0].owner_frame_count, 1);
	assert_int_equal(snapshot->waits[0].owner_frames[0].frame, 4);
}
