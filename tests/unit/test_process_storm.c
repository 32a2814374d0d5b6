/*
 * Processes that take locks in shared memory, in a legal order, as fast as they can: many
 * snapshots find one that waits for another, and none may find a cycle. The environment
 * variable STACKSNAP_TRIES is the number of snapshots in each mode.
 *
 * ctest: serial tries=1000
 */
#include "capture_child.h"

#include <stdio.h>
#include <sys/mman.h>

#include "data/pipeline.h"
#include "stacksnap.h"

enum { PROCESSES = 3, LOCKS = 3, SNAPSHOTS = 30 };

static pthread_mutex_t *mutexes;

static void init_locks(void)
{
	pthread_mutexattr_t attr;

	mutexes = mmap(NULL, LOCKS * sizeof(*mutexes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mutexes == MAP_FAILED)
		_exit(1);
	(void)pthread_mutexattr_init(&attr);
	(void)pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < LOCKS; i++)
		(void)pthread_mutex_init(&mutexes[i], &attr);
}

static void pass_time(unsigned turns)
{
	for (volatile unsigned i = 0; i < turns; i++)
		continue;
}

/* Two of the locks, always in ascending order. */
static void storm(unsigned random)
{
	for (;;) {
		random = random * 1103515245 + 12345;
		unsigned first = random >> 16 & 1;
		unsigned second = first + 1 + (first == 0 ? random >> 18 & 1 : 0);
		(void)pthread_mutex_lock(&mutexes[first]);
		pass_time(random >> 14);
		(void)pthread_mutex_lock(&mutexes[second]);
		pass_time(random >> 14);
		(void)pthread_mutex_unlock(&mutexes[second]);
		(void)pthread_mutex_unlock(&mutexes[first]);
	}
}

static void run_storm(int ready)
{
	init_locks();
	for (unsigned i = 1; i < PROCESSES; i++) {
		pid_t child = fork();
		if (child < 0)
			_exit(1);
		if (child == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			storm(i);
		}
	}
	say_ready(ready);
	storm(0);
}

struct counts {
	size_t cycles;
	size_t owners; /* of another process */
	size_t backs;  /* of them, those that wait for another one themselves */
};

static void look(struct ss_target *target, struct ss_session *session, enum ss_mode mode,
		 struct counts *counts)
{
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = mode };
	const unsigned flags = SS_NO_SOURCE | SS_NO_INLINES;
	struct ss_capture *capture = NULL;
	struct ss_snapshot *snapshot = NULL;

	assert_null(ss_capture_take(target, &options, &capture));
	ss_capture_add_related(capture, target);
	assert_null(ss_capture_unwind(capture, session, NULL, &snapshot));
	assert_null(ss_snapshot_symbolize(snapshot, session, flags));
	assert_null(ss_snapshot_add_related(snapshot, capture, session, flags));
	ss_capture_free(capture);
	assert_null(ss_snapshot_diagnose(snapshot, NULL));
	counts->cycles += ss_snapshot_cycle_count(snapshot);
	const struct ss_wait *wait = ss_snapshot_task(snapshot, SS_TASK_THREAD, 0)->wait;
	counts->owners += wait && wait->owner_tid && wait->owner_pid;
	counts->backs += wait && wait->chain_length && wait->chain[0].thread->wait &&
			 wait->chain[0].thread->wait->owner_tid;
	ss_snapshot_free(snapshot);
}

TEST(test_storm)
{
	static const enum ss_mode modes[] = { SS_MODE_STOP, SS_MODE_AUTO,
					      SS_MODE_NO_STOP };
	const char *wanted = getenv("STACKSNAP_TRIES");
	unsigned long snapshots = wanted ? strtoul(wanted, NULL, 10) : SNAPSHOTS;
	struct ss_target *target = NULL;
	struct ss_session *session = NULL;
	struct counts counts = {};
	pid_t child = start(run_storm);

	assert_null(ss_target_open(child, &target));
	assert_null(ss_session_new(NULL, &session));
	for (size_t i = 0; i < SS_ARRAY_SIZE(modes); i++) {
		for (unsigned long n = 0; n < snapshots; n++)
			look(target, session, modes[i], &counts);
	}
	(void)printf("%zu waits for another process, %zu of them go on, %zu cycles\n",
		     counts.owners, counts.backs, counts.cycles);
	assert_int_equal(counts.cycles, 0);
	/* It was a storm: there were locks to be seen. */
	assert_true(counts.owners > 0);
	ss_session_free(session);
	ss_target_close(target);
	stop(child);
}
