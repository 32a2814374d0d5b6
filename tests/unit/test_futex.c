/*
 * What a thread that is blocked on a futex waits for, in snapshots made by hand: which
 * lock, and whether the owner that it names is believed.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "diagnose/diagnose.h"
#include "diagnose/lock.h"
#include "data/futex.h"

enum { LOCK = 0x10000, WORDS = 8, THREADS = 3, FIRST_TID = 100 };

/* Three threads, of which the first waits. */
struct sample {
	struct ss_snapshot *snapshot;
	struct ss_thread_facts facts; /* of the first one */
	struct ss_wait wait;
	uint32_t words[WORDS]; /* at LOCK */
};

static void setup(struct sample *sample, const char *function)
{
	const struct ss_frame frame = { .pc = 1, .symbol = function };

	*sample = (struct sample){ .snapshot = ss_snapshot_new() };
	assert_non_null(sample->snapshot);
	sample->snapshot->process =
		(struct ss_process){ .pid = FIRST_TID, .inner_pid = FIRST_TID };
	for (int i = 0; i < THREADS; i++) {
		struct ss_task *thread =
			ss_vector_push(&sample->snapshot->tasks[SS_TASK_THREAD]);
		assert_non_null(thread);
		*thread = (struct ss_task){ .tid = FIRST_TID + i,
					    .inner_tid = FIRST_TID + i,
					    .name = i == 1 ? "owner" : "other",
					    .state = 'S',
					    .frame_count = 1 };
		assert_true(ss_snapshot_add_stack(sample->snapshot, &frame, 1,
						  SS_END_ROOT, &thread->stack_id));
	}
	sample->facts = (struct ss_thread_facts){
		.tid = FIRST_TID,
		.call = { .number = 202,
			  .id = SS_SYS_FUTEX,
			  .args = { LOCK, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2 } },
		.lock = { .address = LOCK, .size = sizeof(sample->words) },
	};
	/* a mutex that is held by the second one */
	sample->words[0] = 2;
	sample->words[2] = FIRST_TID + 1;
	sample->words[3] = 1;
}

static bool fill(struct sample *sample)
{
	struct ss_diagnosis d = {
		.snapshot = sample->snapshot,
		.thread = &sample->snapshot->tasks[SS_TASK_THREAD].items[0],
		.facts = &sample->facts,
		.wait = &sample->wait
	};

	sample->wait = (struct ss_wait){ .fd = -1, .timeout_ns = -1, .left_ns = -1 };
	sample->facts.lock.bytes = (const uint8_t *)sample->words;
	return ss_futex_fill(&d);
}

static void check_owner(const struct sample *sample, pid_t tid,
			enum ss_owner_unknown unknown)
{
	assert_int_equal(sample->wait.owner_tid, tid);
	assert_int_equal(sample->wait.owner_unknown, unknown);
}

TEST(test_owner)
{
	struct sample sample;

	setup(&sample, "pthread_mutex_lock");
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.kind, SS_WAIT_MUTEX);
	assert_int_equal(sample.wait.lock, SS_LOCK_MUTEX);
	assert_string_equal(sample.wait.function, "pthread_mutex_lock");
	assert_string_equal(sample.wait.owner_name, "owner");
	assert_false(sample.wait.timed || sample.wait.self_owned);
	check_owner(&sample, FIRST_TID + 1, SS_OWNER_UNSPECIFIED);
	/* itself */
	sample.words[2] = FIRST_TID;
	assert_true(fill(&sample));
	assert_true(sample.wait.self_owned);
	/* it has ended since, or there is none of that id */
	sample.words[2] = FIRST_TID + 1;
	sample.snapshot->tasks[SS_TASK_THREAD].items[1].state = 'Z';
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_GONE);
	assert_int_equal(sample.wait.owner_unknown_tid, FIRST_TID + 1);
	sample.words[2] = 77;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_GONE);
	/* another process may have taken it */
	sample.facts.call.args[1] = FUTEX_WAIT;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_GONE_OR_ELSEWHERE);
	ss_snapshot_free(sample.snapshot);
}

/* Ids in locks are those of the pid namespace. */
TEST(test_namespaces)
{
	struct sample sample;

	setup(&sample, "pthread_mutex_lock");
	sample.snapshot->process.inner_pid = 1;
	for (int i = 0; i < THREADS; i++)
		sample.snapshot->tasks[SS_TASK_THREAD].items[i].inner_tid = 1 + i;
	sample.words[2] = 2;
	assert_true(fill(&sample));
	check_owner(&sample, FIRST_TID + 1, SS_OWNER_UNSPECIFIED);
	/* that could be thread 2 of any namespace that has the memory */
	sample.facts.lock_shared = true;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_AMBIGUOUS_TID);
	assert_int_equal(sample.wait.owner_unknown_tid, 2);
	ss_snapshot_free(sample.snapshot);
}

/* A thread of the process that shares the lock, if it is in our pid namespace. */
TEST(test_other_process)
{
	struct sample sample;
	struct ss_snapshot *other = ss_snapshot_new();

	setup(&sample, "pthread_mutex_lock");
	struct ss_task *thread = other ? ss_vector_push(&other->tasks[SS_TASK_THREAD]) :
					 NULL;
	struct ss_snapshot **slot = ss_vector_push(&sample.snapshot->others);
	assert_true(thread && slot);
	*thread = (struct ss_task){ .tid = 50, .inner_tid = 50, .name = "b" };
	other->process = (struct ss_process){ .pid = 40, .name = "server" };
	other->first = sample.snapshot;
	*slot = other;
	sample.words[2] = 50;
	sample.facts.call.args[1] = FUTEX_WAIT;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_GONE_OR_ELSEWHERE);
	sample.facts.sharer = 40;
	assert_true(fill(&sample));
	check_owner(&sample, 50, SS_OWNER_UNSPECIFIED);
	assert_int_equal(sample.wait.owner_pid, 40);
	assert_string_equal(sample.wait.owner_process, "server");
	thread->inner_tid = 5;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_GONE_OR_ELSEWHERE);
	ss_snapshot_free(sample.snapshot);
}

TEST(test_pi_mutexes)
{
	struct sample sample;

	setup(&sample, "pthread_mutex_lock");
	sample.facts.call.args[1] = FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG;
	sample.words[0] = FUTEX_WAITERS | (FIRST_TID + 1);
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.lock, SS_LOCK_PI_MUTEX);
	check_owner(&sample, FIRST_TID + 1, SS_OWNER_UNSPECIFIED);
	/* the kernel has made it the owner already */
	sample.words[0] = FUTEX_WAITERS | FIRST_TID;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_BEING_GRANTED);
	sample.words[0] = FUTEX_OWNER_DIED;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_DIED);
	/* the C library waits for ever on a word that is zero */
	sample.facts.call.args[1] = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
	sample.facts.call.args[2] = 0;
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.kind, SS_WAIT_MUTEX);
	assert_int_equal(sample.wait.address, 0);
	check_owner(&sample, 0, SS_OWNER_REFUSED);
	ss_snapshot_free(sample.snapshot);
	/* what no function on the stack tells, the operation does */
	setup(&sample, NULL);
	sample.facts.call.args[1] = FUTEX_LOCK_PI;
	sample.words[0] = FIRST_TID + 2;
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.kind, SS_WAIT_MUTEX);
	assert_int_equal(sample.wait.lock, SS_LOCK_PI_MUTEX);
	check_owner(&sample, FIRST_TID + 2, SS_OWNER_UNSPECIFIED);
	ss_snapshot_free(sample.snapshot);
}

/* The joined thread is the one whose structure has the word, or its id. */
TEST(test_joins)
{
	struct sample sample;

	setup(&sample, "__pthread_clockjoin_ex");
	sample.words[0] = FIRST_TID + 1;
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.kind, SS_WAIT_JOIN);
	check_owner(&sample, FIRST_TID + 1, SS_OWNER_UNSPECIFIED);
	sample.snapshot->tasks[SS_TASK_THREAD].items[1].thread_pointer = LOCK - 720;
	assert_true(fill(&sample));
	check_owner(&sample, FIRST_TID + 1, SS_OWNER_UNSPECIFIED);
	/* the id is another one's than that of the structure */
	sample.words[0] = FIRST_TID + 2;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_GONE);
	ss_snapshot_free(sample.snapshot);
}

TEST(test_without_an_owner)
{
	static const struct {
		const char *function;
		enum ss_wait_kind kind;
		enum ss_lock_type lock;
		enum ss_owner_unknown unknown;
	} cases[] = {
		{ "pthread_cond_wait", SS_WAIT_CONDVAR, SS_LOCK_CONDVAR, 0 },
		{ "sem_wait", SS_WAIT_SEMAPHORE, SS_LOCK_SEMAPHORE, 0 },
		{ "pthread_once", SS_WAIT_ONCE, SS_LOCK_ONCE, SS_OWNER_NOT_RECORDED },
		{ "__cxa_guard_acquire", SS_WAIT_ONCE, SS_LOCK_STATIC_INIT,
		  SS_OWNER_NOT_RECORDED },
		{ "std::sys::sync::mutex::futex::Mutex::lock_contended", SS_WAIT_MUTEX,
		  SS_LOCK_RUST_MUTEX, SS_OWNER_NOT_RECORDED },
		{ "std::thread::park", SS_WAIT_FUTEX, SS_LOCK_RUST_PARKER, 0 },
		{ "my_wait", SS_WAIT_FUTEX, SS_LOCK_NONE, 0 },
		{ NULL, SS_WAIT_FUTEX, SS_LOCK_NONE, SS_OWNER_NO_SYMBOLS },
	};

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		struct sample sample;
		setup(&sample, cases[i].function);
		assert_true(fill(&sample));
		assert_int_equal(sample.wait.kind, cases[i].kind);
		assert_int_equal(sample.wait.lock, cases[i].lock);
		check_owner(&sample, 0, cases[i].unknown);
		ss_snapshot_free(sample.snapshot);
	}
}

TEST(test_calls)
{
	struct sample sample;

	setup(&sample, "pthread_mutex_lock");
	sample.facts.lock.size = 0;
	assert_true(fill(&sample));
	check_owner(&sample, 0, SS_OWNER_UNREADABLE);
	assert_int_equal(sample.wait.lock, SS_LOCK_MUTEX);
	sample.facts.lock.size = sizeof(sample.words);
	sample.facts.call.args[3] = 0x1000;
	assert_true(fill(&sample));
	assert_true(sample.wait.timed);
	/* it continues after a stop: the stack has to say what it is */
	sample.facts.call.id = SS_SYS_RESTART_SYSCALL;
	assert_true(fill(&sample));
	assert_string_equal(sample.wait.syscall, "futex");
	check_owner(&sample, FIRST_TID + 1, SS_OWNER_UNSPECIFIED);
	sample.facts.call.id = SS_SYS_FUTEX_WAITV;
	sample.facts.call.args[1] = 3;
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.futexes, 3);
	sample.facts.call.id = SS_SYS_READ;
	assert_false(fill(&sample));
	ss_snapshot_free(sample.snapshot);
	setup(&sample, "main");
	sample.facts.call.id = SS_SYS_RESTART_SYSCALL;
	sample.facts.call.args[3] = 0x1000;
	assert_false(fill(&sample));
	ss_snapshot_free(sample.snapshot);
}

/* Time limits: a duration, or a point in time of either clock. Memory that could not be
   read leaves only that there is one. */
TEST(test_time_limits)
{
	static const struct timespec limit = { .tv_sec = 1000, .tv_nsec = 500 };
	const struct ss_memory_fact memory = { .address = 0x2000,
					       .size = sizeof(limit),
					       .bytes = (const uint8_t *)&limit };
	static const int64_t s = 1000000000;
	static const struct {
		enum ss_syscall_id id;
		uint64_t args[SS_SYSCALL_ARGS];
		int64_t timeout_ns;
		int64_t left_ns;
	} cases[] = {
		{ SS_SYS_FUTEX, { LOCK, FUTEX_WAIT, 2, 0x2000 }, 1000 * s + 500, -1 },
		{ SS_SYS_FUTEX, { LOCK, FUTEX_WAIT_BITSET, 2, 0x2000 }, -1, 400 * s },
		{ SS_SYS_FUTEX,
		  { LOCK, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 2, 0x2000 },
		  -1,
		  100 * s },
		{ SS_SYS_FUTEX, { LOCK, FUTEX_LOCK_PI, 0, 0x2000 }, -1, 100 * s },
		{ SS_SYS_FUTEX, { LOCK, FUTEX_LOCK_PI2, 0, 0x2000 }, -1, 400 * s },
		{ SS_SYS_FUTEX_WAIT,
		  { LOCK, 2, 0, 0, 0x2000, CLOCK_REALTIME },
		  -1,
		  100 * s },
		{ SS_SYS_FUTEX_WAITV,
		  { LOCK, 2, 0, 0x2000, CLOCK_MONOTONIC },
		  -1,
		  400 * s },
		/* a clock whose time is not known; no limit */
		{ SS_SYS_FUTEX_WAITV, { LOCK, 2, 0, 0x2000, CLOCK_TAI }, -1, -1 },
		{ SS_SYS_FUTEX, { LOCK, FUTEX_WAIT_BITSET, 2, 0 }, -1, -1 },
	};
	struct ss_facts facts = { .time_ns = (uint64_t)(900 * s) + 500,
				  .monotonic_ns = (uint64_t)(600 * s) + 500 };
	struct sample sample;

	setup(&sample, "pthread_cond_timedwait");
	sample.snapshot->facts = &facts;
	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		int arg = cases[i].id == SS_SYS_FUTEX_WAIT ? 4 : 3;
		bool timed = cases[i].args[arg] != 0;
		sample.facts.call.id = cases[i].id;
		memcpy(sample.facts.call.args, cases[i].args, sizeof(cases[i].args));
		sample.facts.memory[arg] = timed ? memory : (struct ss_memory_fact){};
		assert_true(fill(&sample));
		assert_int_equal(sample.wait.timed, timed);
		assert_int_equal(sample.wait.timeout_ns, cases[i].timeout_ns);
		assert_int_equal(sample.wait.left_ns, cases[i].left_ns);
		sample.facts.memory[arg] = (struct ss_memory_fact){};
		assert_true(fill(&sample));
		assert_int_equal(sample.wait.timed, timed);
		assert_true(sample.wait.timeout_ns == -1 && sample.wait.left_ns == -1);
	}
	/* the limit has passed; the clock of another time namespace */
	sample.facts.call =
		(struct ss_syscall){ .id = SS_SYS_FUTEX,
				     .args = { LOCK, FUTEX_WAIT_BITSET, 2, 0x2000 } };
	sample.facts.memory[3] = memory;
	facts.monotonic_ns = (uint64_t)(2000 * s);
	assert_true(fill(&sample));
	assert_int_equal(sample.wait.left_ns, 0);
	facts.monotonic_ns = 0;
	assert_true(fill(&sample));
	assert_true(sample.wait.timed && sample.wait.left_ns == -1);
	sample.snapshot->facts = NULL;
	ss_snapshot_free(sample.snapshot);
}

/* The variable that has the lock; nothing where the lock begins before it. */
TEST(test_symbol)
{
	struct sample sample;

	setup(&sample, "pthread_mutex_lock");
	struct ss_lock_place *place = ss_vector_push(&sample.snapshot->places);
	assert_non_null(place);
	*place = (struct ss_lock_place){ .address = LOCK,
					 .symbol = "locks",
					 .symbol_address = LOCK - 0x28 };
	assert_true(fill(&sample));
	assert_string_equal(sample.wait.symbol, "locks");
	assert_int_equal(sample.wait.symbol_offset, 0x28);
	place->symbol_address = LOCK + 4;
	assert_true(fill(&sample));
	assert_null(sample.wait.symbol);
	ss_snapshot_free(sample.snapshot);
}
