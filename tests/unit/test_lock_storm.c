/*
 * Many threads that take locks in a legal order as fast as they can: each snapshot finds
 * some that wait for others, and none may find a cycle. The environment variable
 * STACKSNAP_TRIES is the number of snapshots in each mode.
 *
 * ctest: serial tries=1000
 */
#include "capture_child.h"

#include <stdatomic.h>
#include <stdio.h>

#include "data/pipeline.h"
#include "stacksnap.h"

enum { STORM_THREADS = 64, LOCKS = 6, SNAPSHOTS = 8 };

static pthread_mutex_t mutexes[LOCKS];
static pthread_rwlock_t rwlocks[LOCKS];

static void init_locks(void)
{
	pthread_mutexattr_t robust;

	(void)pthread_mutexattr_init(&robust);
	(void)pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	for (int i = 0; i < LOCKS; i++) {
		(void)pthread_mutex_init(&mutexes[i], i % 3 == 2 ? &robust : NULL);
		(void)pthread_rwlock_init(&rwlocks[i], NULL);
	}
}

static void lock_both(unsigned which, unsigned how)
{
	(void)pthread_mutex_lock(&mutexes[which]);
	if (how % 4 == 0)
		(void)pthread_rwlock_wrlock(&rwlocks[which]);
	else
		(void)pthread_rwlock_rdlock(&rwlocks[which]);
}

static void unlock_both(unsigned which)
{
	(void)pthread_rwlock_unlock(&rwlocks[which]);
	(void)pthread_mutex_unlock(&mutexes[which]);
}

/* Two or three of the locks, always in ascending order. */
static void *storm(void *data)
{
	unsigned random = (unsigned)(uintptr_t)data;

	for (;;) {
		random = random * 1103515245 + 12345;
		unsigned first = random >> 16 & 1;
		unsigned second = 2 + (random >> 18 & 1);
		unsigned third = 4 + (random >> 20 & 1);
		lock_both(first, random >> 22);
		lock_both(second, random >> 24);
		if (random >> 28 & 1) {
			lock_both(third, random >> 26);
			unlock_both(third);
		}
		unlock_both(second);
		unlock_both(first);
	}
	return NULL;
}

static void run_storm(int ready)
{
	pthread_t thread;

	init_locks();
	for (uintptr_t i = 0; i < STORM_THREADS; i++) {
		if (pthread_create(&thread, NULL, storm, (void *)(i + 1)) != 0)
			_exit(1);
	}
	say_ready(ready);
	(void)sleep_for_ever(NULL);
}

struct counts {
	size_t deadlocks;
	size_t owners; /* threads that wait for a lock of which the owner is known */
};

static void look(struct ss_target *target, struct ss_session *session, enum ss_mode mode,
		 struct counts *counts)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = mode };
	struct ss_capture *capture = NULL;
	struct ss_snapshot *snapshot = NULL;

	assert_null(ss_capture_take(target, &options, &capture));
	ss_capture_add_related(capture, target);
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	assert_null(
		ss_snapshot_symbolize(snapshot, session, SS_NO_SOURCE | SS_NO_INLINES));
	assert_null(ss_snapshot_diagnose(snapshot, NULL));
	counts->deadlocks += ss_snapshot_deadlock_count(snapshot);
	for (size_t i = 0; i < ss_snapshot_task_count(snapshot, SS_TASK_THREAD); i++) {
		const struct ss_task *thread =
			ss_snapshot_task(snapshot, SS_TASK_THREAD, i);
		counts->owners += thread->wait && thread->wait->owner_tid;
	}
	ss_snapshot_free(snapshot);
	ss_capture_free(capture);
}

TEST(test_storm)
{
	static const enum ss_mode modes[] = { SS_MODE_STOP, SS_MODE_AUTO,
					      SS_MODE_NO_STOP };
	const char *wanted = getenv("STACKSNAP_TRIES");
	unsigned long snapshots = wanted ? strtoul(wanted, NULL, 10) : SNAPSHOTS;
	struct ss_target *target = NULL;
	struct ss_session *session = NULL;
	pid_t child = start(run_storm);

	assert_null(ss_target_open(child, &target));
	assert_null(ss_session_new(NULL, &session));
	for (size_t i = 0; i < SS_ARRAY_SIZE(modes); i++) {
		struct counts counts = {};
		for (unsigned long n = 0; n < snapshots; n++)
			look(target, session, modes[i], &counts);
		(void)printf("mode %d: %zu owners known, %zu deadlocks\n", (int)modes[i],
			     counts.owners, counts.deadlocks);
		assert_int_equal(counts.deadlocks, 0);
		/* It was a storm: there were locks to be seen. */
		assert_true(counts.owners > 0);
	}
	ss_session_free(session);
	ss_target_close(target);
	stop(child);
}
