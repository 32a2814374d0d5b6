/*
 * The list of threads, over a process that is made up: threads appear, sleep, run and end
 * between two ticks and in the middle of one.
 */
#include "unit.h"

#include <string.h>

#include "base/cleanup.h"
#include "sample/thread_list.h"

enum { THREADS_MAX = 64 };

struct process {
	struct {
		pid_t tid; /* 0: none */
		uint64_t runs;
		uint64_t unaccounted; /* of them, without CPU time */
	} threads[THREADS_MAX];	      /* ascending */
	pid_t tids[THREADS_MAX];
	uint64_t ended_ns;
	bool has_clock;
	unsigned reads;
	unsigned listings;
	pid_t unlisted; /* the next listing lacks it, although it is there */
	/* What happens in the middle of a tick: after so many reads (0: nothing). */
	unsigned event_at;
	void (*event)(struct process *process);
};

static bool list(void *data, const pid_t **ret, size_t *ret_count)
{
	struct process *process = data;

	*ret_count = 0;
	process->listings++;
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (process->threads[i].tid &&
		    process->threads[i].tid != process->unlisted)
			process->tids[(*ret_count)++] = process->threads[i].tid;
	}
	*ret = process->tids;
	process->unlisted = 0;
	return true;
}

static size_t count(void *data)
{
	struct process *process = data;
	size_t found = 0;

	for (size_t i = 0; i < THREADS_MAX; i++)
		found += process->threads[i].tid != 0;
	return found;
}

static int open_none(void *data, pid_t tid)
{
	(void)data;
	(void)tid;
	return -1;
}

static uint64_t run_ns_of(const struct process *process, size_t index)
{
	return (process->threads[index].runs - process->threads[index].unaccounted) *
	       1000;
}

static bool read_schedstat(void *data, pid_t tid, int fd, struct ss_schedstat *ret)
{
	struct process *process = data;

	(void)fd;
	if (++process->reads == process->event_at)
		process->event(process);
	for (size_t i = 0; i < THREADS_MAX; i++) {
		if (process->threads[i].tid != tid)
			continue;
		*ret = (struct ss_schedstat){ .run_count = process->threads[i].runs,
					      .run_ns = run_ns_of(process, i) };
		return true;
	}
	return false;
}

static bool read_cpu_time(void *data, uint64_t *ret)
{
	struct process *process = data;

	*ret = process->ended_ns;
	for (size_t i = 0; i < THREADS_MAX; i++)
		*ret += process->threads[i].tid ? run_ns_of(process, i) : 0;
	return process->has_clock;
}

static const struct ss_thread_source source = { .list = list,
						.count = count,
						.open = open_none,
						.read = read_schedstat,
						.cpu_time = read_cpu_time };

static void begin(struct process *process, struct ss_thread_list *threads, size_t number)
{
	*process = (struct process){ .has_clock = true };
	for (size_t i = 0; i < number; i++) {
		process->threads[i].tid = (pid_t)(100 + i);
		process->threads[i].runs = 1;
	}
	ss_thread_list_init(threads, &source, process);
	threads->sampled = true;
}

static void end_thread(struct process *process, size_t index)
{
	process->ended_ns += run_ns_of(process, index);
	process->threads[index].tid = 0;
}

/* Captures what is due: all of it is blocked. Returns how many there were. */
static size_t capture(struct ss_thread_list *threads)
{
	size_t captured = 0;

	for (size_t i = 0; i < threads->items.count; i++) {
		struct ss_sampled_thread *thread = &threads->items.items[i];
		if (!thread->due || thread->state == SS_THREAD_GONE)
			continue;
		captured++;
		(void)ss_thread_begin_capture(thread, true, false, thread->run_count);
		ss_thread_end_capture(thread, false, true, thread->run_count);
		ss_thread_accept(thread, false, false);
	}
	return captured;
}

static size_t tick(struct process *process, struct ss_thread_list *threads)
{
	process->reads = 0;
	assert_true(ss_thread_list_refresh(threads));
	return capture(threads);
}

TEST(test_sleep_and_run)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 20);
	assert_int_equal(tick(&process, &threads), 20);
	for (int i = 0; i < 20; i++)
		assert_int_equal(tick(&process, &threads), 0);
	process.threads[7].runs++;
	assert_int_equal(tick(&process, &threads), 1);
	assert_int_equal(ss_thread_list_find(&threads, 107)->run_count, 2);
	assert_int_equal(ss_thread_list_find(&threads, 107)->run_ns, 2000);
	assert_null(ss_thread_list_find(&threads, 99));
	assert_null(ss_thread_list_find(&threads, 120));
	assert_int_equal(process.listings, 1);
	ss_thread_list_deinit(&threads);
}

/* Once all are quiet few of them are read, as long as the CPU time stays the same; and whoever
   runs then is not overlooked. */
TEST(test_balance)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 40);
	for (int i = 0; i < 20; i++)
		(void)tick(&process, &threads);
	assert_true(threads.balance.known);
	assert_int_equal(process.reads, 1);
	for (size_t i = 0; i < 40; i++) {
		process.threads[i].runs++;
		assert_int_equal(tick(&process, &threads), 1);
		assert_int_equal(
			ss_thread_list_find(&threads, (pid_t)(100 + i))->run_count, 2);
	}
	/* Without the clock each one is read at each tick. */
	process.has_clock = false;
	for (int i = 0; i < 100; i++)
		assert_int_equal(tick(&process, &threads), 0);
	assert_true(process.reads >= 40);
	ss_thread_list_deinit(&threads);
}

/* Whether the tick after the next `ticks` at most captures this thread. */
static void check_captured_within(struct process *process, struct ss_thread_list *threads,
				  pid_t tid, int ticks)
{
	int passed = 1;

	while (tick(process, threads) == 0) {
		if (++passed > ticks)
			fail_msg("not captured within %d ticks", ticks);
	}
	assert_int_equal(ss_thread_list_find(threads, tid)->run_count, 2);
}

/* A thread is on a CPU for the first time, or was for a time that does not count. */
TEST(test_run_without_time)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 40);
	for (int i = 0; i < 20; i++)
		(void)tick(&process, &threads);
	process.threads[30].runs = 2;
	process.threads[30].unaccounted = 1;
	ss_thread_list_expect(&threads, 130);
	ss_thread_list_expect(&threads, 7);
	check_captured_within(&process, &threads, 130, 1);
	for (int i = 0; i < 20; i++)
		(void)tick(&process, &threads);
	process.threads[20].runs = 2;
	process.threads[20].unaccounted = 1;
	check_captured_within(&process, &threads, 120, 128);
	/* Later it does count. */
	process.threads[20].unaccounted = 0;
	for (int i = 0; i < 20; i++)
		assert_int_equal(tick(&process, &threads), 0);
	assert_int_equal(process.reads, 1);
	/* Without samples of the CPUs, all are read. */
	threads.sampled = threads.balance.known = false;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(tick(&process, &threads), 0);
		assert_int_equal(process.reads, 40);
	}
	ss_thread_list_deinit(&threads);
}

/* What the process has run more than its threads is another constant than before. */
TEST(test_other_balance)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 40);
	for (int i = 0; i < 20; i++)
		(void)tick(&process, &threads);
	for (int i = 0; i < 3; i++) {
		process.ended_ns += 12345;
		for (int j = 0; j < 4; j++)
			assert_int_equal(tick(&process, &threads), 0);
		assert_true(process.reads <= 3);
		process.threads[i].runs++;
		assert_int_equal(tick(&process, &threads), 1);
		assert_true(process.reads >= 40);
		(void)tick(&process, &threads);
		assert_true(process.reads <= 3);
	}
	ss_thread_list_deinit(&threads);
}

TEST(test_threads_come_and_go)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 10);
	(void)tick(&process, &threads);
	end_thread(&process, 3);
	assert_int_equal(tick(&process, &threads), 0);
	assert_int_equal(ss_thread_list_find(&threads, 103)->state, SS_THREAD_GONE);
	process.threads[30].tid = 200;
	assert_int_equal(tick(&process, &threads), 1);
	assert_null(ss_thread_list_find(&threads, 103));
	assert_non_null(ss_thread_list_find(&threads, 200));
	/* One ends and another one begins between two ticks. */
	end_thread(&process, 0);
	process.threads[31].tid = 201;
	process.threads[31].runs = 1;
	(void)tick(&process, &threads);
	(void)tick(&process, &threads);
	assert_int_equal(threads.items.count, 10);
	ss_thread_list_deinit(&threads);
}

/* While threads end, the kernel's list may lack some that have not ended. */
TEST(test_unlisted)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 10);
	(void)tick(&process, &threads);
	end_thread(&process, 3);
	process.threads[30].tid = 200;
	process.threads[30].runs = 1;
	process.unlisted = 104;
	assert_int_equal(tick(&process, &threads), 1);
	assert_int_equal(process.unlisted, 0);
	assert_int_equal(ss_thread_list_find(&threads, 103)->state, SS_THREAD_GONE);
	assert_int_equal(ss_thread_list_find(&threads, 104)->state, SS_THREAD_IDLE);
	assert_int_equal(tick(&process, &threads), 0);
	assert_int_equal(threads.items.count, 10);
	process.threads[4].runs++;
	assert_int_equal(tick(&process, &threads), 1);
	ss_thread_list_deinit(&threads);
}

static void run_first_and_last(struct process *process)
{
	process->threads[0].runs++;
	process->threads[19].runs++;
}

static void end_first_and_last(struct process *process)
{
	end_thread(process, 0);
	end_thread(process, 19);
}

/* Whatever happens while the threads are asked is seen in this tick or the next one. */
TEST(test_events_in_a_tick)
{
	void (*const events[])(struct process *) = { run_first_and_last,
						     end_first_and_last };

	for (size_t e = 0; e < SS_ARRAY_SIZE(events); e++) {
		for (unsigned at = 1; at < 50; at++) {
			struct process process;
			struct ss_thread_list threads;
			begin(&process, &threads, 20);
			process.event = events[e];
			(void)tick(&process, &threads);
			process.event_at = at;
			process.threads[5].runs++; /* somebody is asked */
			size_t captured = tick(&process, &threads);
			bool happened = process.reads >= at;
			process.event_at = 0;
			captured += tick(&process, &threads);
			if (happened && e == 0)
				assert_int_equal(captured, 3);
			if (happened && e == 1) {
				const struct ss_sampled_thread *first =
					ss_thread_list_find(&threads, 100);
				assert_true(!first || first->state == SS_THREAD_GONE);
			}
			ss_thread_list_deinit(&threads);
		}
	}
}

TEST(test_the_end)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 5);
	(void)tick(&process, &threads);
	for (size_t i = 0; i < 5; i++)
		end_thread(&process, i);
	(void)tick(&process, &threads);
	for (size_t i = 0; i < threads.items.count; i++)
		assert_int_equal(threads.items.items[i].state, SS_THREAD_GONE);
	(void)tick(&process, &threads);
	assert_int_equal(threads.items.count, 0);
	ss_thread_list_deinit(&threads);
}

static void run_first(struct process *process)
{
	process->threads[0].runs++;
	process->event_at = process->reads + 1;
}

/* While a thread runs all the time, the first ticks read each thread once: whether the others are
   quiet is not known yet. */
TEST(test_first_ticks)
{
	struct process process;
	struct ss_thread_list threads;

	begin(&process, &threads, 20);
	process.event = run_first;
	process.event_at = 1;
	for (int i = 0; i < 4; i++) {
		process.event_at = 1;
		(void)tick(&process, &threads);
		assert_int_equal(process.reads, 20);
	}
	ss_thread_list_deinit(&threads);
}
