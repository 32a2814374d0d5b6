/*
 * What functions on the stack say about waits, and which threads may hold a lock of the
 * application, in hand-made snapshots.
 */
#include "view_sample.h"

#include <stdlib.h>

#include "diagnose/diagnose.h"
#include "diagnose/wait_table.h"

enum { FRAMES_MAX = 8 };

/* Another one for each function: stacks with equal addresses are one. */
static uint64_t offset_of(const char *function)
{
	uint64_t offset = 0;

	for (; *function; function++)
		offset = (offset * 31 + (unsigned char)*function) % 0xffff1;
	return offset;
}

/* A thread whose stack has these functions, the innermost first, up to NULL; with a wait of that kind.
   Those of the C library begin with "__". */
static void add(struct ss_snapshot *snapshot, pid_t tid, enum ss_wait_kind kind,
		const char *const *functions)
{
	struct ss_frame frames[FRAMES_MAX];
	size_t count = 0;

	for (; functions[count]; count++)
		frames[count] = sample_frame(
			snapshot,
			strncmp(functions[count], "__", 2) == 0 ? SAMPLE_LIBC :
								  SAMPLE_PROGRAM,
			offset_of(functions[count]), functions[count]);
	sample_add_thread(snapshot, tid, "shop", frames, count, SS_END_ROOT);
	snapshot->waits = realloc(snapshot->waits, snapshot->tasks[SS_TASK_THREAD].count *
							   sizeof(*snapshot->waits));
	assert_non_null(snapshot->waits);
	snapshot->waits[snapshot->tasks[SS_TASK_THREAD].count - 1] =
		(struct ss_wait){ .kind = kind };
}

#define ADD(snapshot, tid, kind, ...)                                                    \
	add(snapshot, tid, kind, (const char *const[]){ __VA_ARGS__, NULL })

static void find(struct ss_snapshot *snapshot, const char *text)
{
	struct ss_wait_table *table = NULL;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		if (snapshot->waits[i].kind != SS_WAIT_OTHER)
			snapshot->tasks[SS_TASK_THREAD].items[i].wait =
				&snapshot->waits[i];
	}
	assert_null(ss_wait_table_new(&table));
	assert_null(ss_wait_table_add(table, "test", text, strlen(text)));
	assert_true(ss_purposes_find(snapshot, table));
	assert_true(ss_application_locks_find(snapshot));
	ss_wait_table_free(table);
}

static void assert_purpose(const struct ss_snapshot *snapshot, size_t thread,
			   enum ss_wait_purpose purpose, const char *function)
{
	const struct ss_wait *wait = &snapshot->waits[thread];

	assert_int_equal(wait->purpose, purpose);
	if (!function) {
		assert_null(wait->purpose_function);
		return;
	}
	assert_non_null(wait->purpose_function);
	assert_string_equal(wait->purpose_function, function);
}

TEST(test_which_counts)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	ADD(snapshot, 100, SS_WAIT_CONDVAR, "__cond_wait", "inner_lock(int)",
	    "outer_lock", "main");
	/* Locks are built on conditions, which tell less. */
	ADD(snapshot, 101, SS_WAIT_CONDVAR, "__cond_wait",
	    "std::condition_variable::wait(int)", "outer_lock", "main");
	ADD(snapshot, 102, SS_WAIT_CONDVAR, "__cond_wait", "condition", "other", "main");
	/* Idle functions and those of a runtime say more than what is within them. */
	ADD(snapshot, 103, SS_WAIT_CONDVAR, "__cond_wait", "inner_lock", "next_job",
	    "main");
	ADD(snapshot, 104, SS_WAIT_CONDVAR, "__cond_wait", "next_job", "collector",
	    "main");
	/* What the C library and the kernel know is not questioned, */
	ADD(snapshot, 105, SS_WAIT_MUTEX, "__lock", "outer_lock", "main");
	/* except that the thread has nothing to do. */
	ADD(snapshot, 106, SS_WAIT_MUTEX, "__lock", "next_job", "main");
	ADD(snapshot, 107, SS_WAIT_OTHER, "outer_lock", "main");
	find(snapshot,
	     "lock inner_lock\nlock outer_lock\nevent condition\nidle next_job\n"
	     "service collector\n");
	assert_purpose(snapshot, 0, SS_PURPOSE_LOCK, "inner_lock");
	assert_purpose(snapshot, 1, SS_PURPOSE_LOCK, "outer_lock");
	assert_purpose(snapshot, 2, SS_PURPOSE_EVENT, "condition");
	assert_purpose(snapshot, 3, SS_PURPOSE_IDLE, "next_job");
	assert_purpose(snapshot, 4, SS_PURPOSE_SERVICE, "collector");
	assert_purpose(snapshot, 5, SS_PURPOSE_UNKNOWN, NULL);
	assert_purpose(snapshot, 6, SS_PURPOSE_IDLE, "next_job");
	assert_purpose(snapshot, 7, SS_PURPOSE_UNKNOWN, NULL);
}

/* A thread does not wait for what a signal handler interrupted. */
TEST(test_signal_handler)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();
	struct ss_frame frames[] = {
		sample_frame(snapshot, SAMPLE_LIBC, 0x10, "poll"),
		sample_frame(snapshot, SAMPLE_LIBC, 0x20, "__restore_rt"),
		sample_frame(snapshot, SAMPLE_PROGRAM, 0x30, "outer_lock"),
	};

	frames[1].signal_frame = true;
	sample_add_thread(snapshot, 100, "shop", frames, 3, SS_END_ROOT);
	snapshot->waits = calloc(1, sizeof(*snapshot->waits));
	assert_non_null(snapshot->waits);
	snapshot->waits[0].kind = SS_WAIT_POLL;
	find(snapshot, "lock outer_lock");
	assert_purpose(snapshot, 0, SS_PURPOSE_UNKNOWN, NULL);
}

TEST(test_threads_of_the_jdk)
{
	static const struct {
		const char *name;
		const char *function;
		enum ss_wait_purpose purpose;
	} cases[] = {
		{ "Common-Cleaner", "JVM_MonitorWait", SS_PURPOSE_SERVICE },
		{ "Finalizer", "Unsafe_Park", SS_PURPOSE_SERVICE },
		{ "worker", "Unsafe_Park", SS_PURPOSE_EVENT },
		{ "Finalizer", "std::condition_variable::wait", SS_PURPOSE_EVENT },
	};
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		ADD(snapshot, 100 + (pid_t)i, SS_WAIT_CONDVAR, "__cond_wait",
		    cases[i].function, "thread_entry");
		snapshot->tasks[SS_TASK_THREAD].items[i].name = cases[i].name;
	}
	find(snapshot, "");
	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++)
		assert_purpose(snapshot, i, cases[i].purpose, cases[i].function);
}

/* The same, of a stack in a recording. */
TEST(test_search)
{
	static const struct {
		const char *call;
		const char *symbols[5];
		enum ss_wait_purpose purpose;
		const char *function;
	} cases[] = {
		{ "futex",
		  { NULL, "pthread_cond_wait", "void take<int>(int)", "main" },
		  SS_PURPOSE_LOCK,
		  "take<int>" },
		{ "futex",
		  { "pthread_mutex_lock", "void take<int>(int)", "main" },
		  SS_PURPOSE_UNKNOWN,
		  NULL },
		{ "read", { "void take<int>(int)", "main" }, SS_PURPOSE_UNKNOWN, NULL },
		{ "read", { "next_job", "main" }, SS_PURPOSE_IDLE, "next_job" },
		{ "epoll_wait",
		  { "epoll_wait", "void take<int>(int)", "next_job" },
		  SS_PURPOSE_IDLE,
		  "next_job" },
		{ "poll", { "main" }, SS_PURPOSE_UNKNOWN, NULL },
	};
	static const char text[] = "lock take* a word\nidle next_job\n";
	struct ss_wait_table *table = NULL;

	assert_null(ss_wait_table_new(&table));
	assert_null(ss_wait_table_add(table, "test", text, strlen(text)));
	for (size_t i = 0; i < SS_ARRAY_SIZE(cases); i++) {
		const struct ss_stack_purpose found =
			ss_wait_table_search(table, cases[i].call, cases[i].symbols, 5);
		assert_int_equal(found.purpose, cases[i].purpose);
		assert_int_equal(found.size,
				 cases[i].function ? strlen(cases[i].function) : 0);
		if (cases[i].function)
			assert_memory_equal(found.function, cases[i].function,
					    found.size);
		if (found.purpose == SS_PURPOSE_LOCK)
			assert_string_equal(found.words, "a word");
	}
	ss_wait_table_free(table);
}

TEST(test_suspects)
{
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	for (pid_t tid = 100; tid < 103; tid++)
		ADD(snapshot, tid, SS_WAIT_CONDVAR, "__cond_wait", "take", "query",
		    "session", "thread", "__start");
	ADD(snapshot, 103, SS_WAIT_READ, "__read", "session", "thread", "__start");
	ADD(snapshot, 104, SS_WAIT_SLEEP, "__sleep", "delay", "query", "session",
	    "thread", "__start");
	ADD(snapshot, 105, SS_WAIT_CONDVAR, "__cond_wait", "next_job", "query", "session",
	    "thread", "__start");
	ADD(snapshot, 106, SS_WAIT_OTHER, "__write", "log", "__start");
	ADD(snapshot, 107, SS_WAIT_CONDVAR, "__cond_wait", "grab", "other", "__start");
	/* It waits for a job in the function itself. */
	ADD(snapshot, 108, SS_WAIT_CONDVAR, "__cond_wait", "query", "session", "thread",
	    "__start");
	static const struct ss_descriptor connection = { .kind = SS_FD_SOCKET };
	snapshot->waits[3].descriptor = &connection;
	find(snapshot, "lock take a row\nlock grab\nidle next_job\n");
	assert_int_equal(snapshot->application_locks.count, 2);
	const struct ss_application_lock *lock = &snapshot->application_locks.items[0];
	assert_string_equal(lock->function, "take");
	assert_string_equal(lock->words, "a row");
	assert_int_equal(lock->waiting, 3);
	/* Not the one that waits for work, and not those that have less in common. */
	assert_int_equal(lock->suspects_total, 1);
	assert_int_equal(lock->suspects[0], 4);
	assert_string_equal(lock->common_function, "query");
	/* It waits for its client: a transaction may hold the lock. */
	assert_int_equal(lock->client_suspects_total, 1);
	assert_int_equal(lock->client_suspects[0], 3);
	assert_string_equal(lock->client_function, "session");
	/* Nothing but the C library in common: nobody is named. */
	lock = &snapshot->application_locks.items[1];
	assert_string_equal(lock->function, "grab");
	assert_int_equal(lock->suspects_total, 0);
	assert_int_equal(lock->client_suspects_total, 0);
}

/* A thread of a pool, with the functions of Java within its task. */
static void add_worker(struct ss_snapshot *snapshot, pid_t tid, const char *name,
		       const char *first, const char *second)
{
	const char *functions[] = { first, second ? second : "Shop.serve",
				    "java.util.concurrent.ThreadPoolExecutor.runWorker" };
	struct ss_frame frames[SS_ARRAY_SIZE(functions)];

	for (size_t i = 0; i < SS_ARRAY_SIZE(functions); i++) {
		frames[i] = sample_frame(snapshot, SAMPLE_PROGRAM,
					 offset_of(functions[i]), functions[i]);
		frames[i].kind = SS_FRAME_JAVA;
	}
	sample_add_thread(snapshot, tid, name, frames, SS_ARRAY_SIZE(frames),
			  SS_END_ROOT);
	snapshot->waits = realloc(snapshot->waits, snapshot->tasks[SS_TASK_THREAD].count *
							   sizeof(*snapshot->waits));
	assert_non_null(snapshot->waits);
	snapshot->waits[snapshot->tasks[SS_TASK_THREAD].count - 1] =
		(struct ss_wait){ .kind = SS_WAIT_CONDVAR };
}

/* The first pool waits for tasks; whether it is exhausted depends on another thread. */
static void check_pool(const char *name, const char *inner, const char *outer,
		       bool exhausted)
{
	static const char get[] = "java.util.concurrent.FutureTask.get";
	_cleanup_(ss_snapshot_cleanup) struct ss_snapshot *snapshot = sample_new();

	add_worker(snapshot, 100, "pool-1-thread-1", "park", get);
	add_worker(snapshot, 101, "pool-1-thread-2", "park", get);
	add_worker(snapshot, 102, name, inner, outer);
	find(snapshot, "event park\nidle getTask\n");
	for (size_t i = 0; i < 2; i++)
		assert_purpose(snapshot, i,
			       exhausted ? SS_PURPOSE_LOCK : SS_PURPOSE_EVENT,
			       exhausted ? get : "park");
}

TEST(test_pools)
{
	check_pool("pool-2-thread-1", "park", "getTask", true);
	check_pool("pool-2-thread-1", "park", "java.util.concurrent.FutureTask.get",
		   true);
	/* A thread executes a task, or is free to do so. */
	check_pool("pool-2-thread-1", "read", NULL, false);
	check_pool("pool-1-thread-3", "park", "getTask", false);
	/* An event completes this one. */
	check_pool("pool-1-thread-3", "park",
		   "java.util.concurrent.CompletableFuture.get", false);
}
