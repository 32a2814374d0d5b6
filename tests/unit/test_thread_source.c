/*
 * Which threads have run, of a real process: threads that wake up, run for a microsecond and wait
 * again.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sample/sampler.h"
#include "process/target.h"

enum { THREADS = 60, TICKS = 1500, WOKEN_MAX = 3, STACK = 64 << 10 };

struct shared {
	_Atomic uint32_t turns[THREADS]; /* each thread waits for a change of its one */
	_Atomic uint32_t done[THREADS];
	_Atomic pid_t tids[THREADS];
};

static struct shared *shared;

_Noreturn static void *run(void *data)
{
	size_t index = (size_t)data;

	shared->tids[index] = (pid_t)syscall(SYS_gettid);
	for (;;) {
		uint32_t turn = shared->turns[index];
		shared->done[index] = turn;
		(void)syscall(SYS_futex, &shared->turns[index], FUTEX_WAIT, turn, NULL);
	}
}

static void start_threads(bool timer)
{
	const struct itimerval far = { .it_value.tv_sec = 1000000 };
	pthread_attr_t attr;
	pthread_t thread;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (timer)
		(void)setitimer(ITIMER_PROF, &far, NULL);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	for (size_t i = 0; i < THREADS; i++) {
		if (pthread_create(&thread, &attr, run, (void *)i) != 0)
			_exit(1);
	}
	for (;;)
		(void)pause();
}

/* Whether it has left its CPU: only then does the kernel show a system call. */
static bool is_blocked(pid_t pid, pid_t tid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	int c = fgetc(file);
	(void)fclose(file);
	return c >= '0' && c <= '9';
}

static void wait_until_blocked(pid_t pid, size_t index)
{
	uint64_t limit = ss_now_ns() + 60 * SS_NS_PER_SECOND;

	while (!shared->tids[index] || shared->done[index] != shared->turns[index] ||
	       !is_blocked(pid, shared->tids[index])) {
		if (ss_now_ns() > limit)
			fail_msg("thread %zu does not wait", index);
	}
}

static void wake(size_t index)
{
	shared->turns[index]++;
	assert_int_equal(syscall(SYS_futex, &shared->turns[index], FUTEX_WAKE, 1), 1);
}

/* As if all that is due were blocked. Returns how many there were. */
static size_t capture(struct ss_thread_list *threads)
{
	size_t captured = 0;

	for (size_t i = 0; i < threads->items.count; i++) {
		struct ss_sampled_thread *thread = &threads->items.items[i];
		assert_int_not_equal(thread->state, SS_THREAD_GONE);
		if (!thread->due)
			continue;
		captured++;
		(void)ss_thread_begin_capture(thread, true, false, thread->run_count);
		ss_thread_end_capture(thread, false, true, thread->run_count);
		ss_thread_accept(thread, false, false);
	}
	return captured;
}

struct counts {
	size_t woken;
	size_t missed; /* not seen at the next tick */
};

/* Whether the kernel has counted no time for what a thread has run since it was read: it takes the
   time of interrupts, and in a virtual machine that of other machines, from that of the thread. */
static bool has_no_time(const struct ss_thread_list *threads,
			const struct ss_sampled_thread *thread)
{
	struct ss_schedstat now;

	assert_true(threads->source->read(threads->source_data, thread->tid, -1, &now));
	assert_true(now.run_count > thread->run_count);
	return now.run_ns == thread->run_ns;
}

static void check_tick(struct ss_thread_list *threads, pid_t pid, unsigned tick,
		       struct counts *counts)
{
	size_t woken[WOKEN_MAX];
	size_t count = (size_t)rand() % (WOKEN_MAX + 1);

	for (size_t i = 0; i < count; i++) {
		woken[i] = (size_t)rand() % THREADS;
		wake(woken[i]);
		wait_until_blocked(pid, woken[i]);
	}
	assert_true(ss_thread_list_refresh(threads));
	for (size_t i = 0; i < count; i++) {
		const struct ss_sampled_thread *thread =
			ss_thread_list_find(threads, shared->tids[woken[i]]);
		assert_non_null(thread);
		if (thread->due)
			continue;
		if (!has_no_time(threads, thread))
			fail_msg("tick %u: thread %zu has run", tick, woken[i]);
		counts->missed++;
	}
	counts->woken += count;
	assert_true(capture(threads) <= count + counts->missed);
}

static void check_process(bool timer)
{
	struct ss_target_threads source;
	struct ss_thread_list threads;
	struct ss_target *target = NULL;
	struct counts counts = {};
	unsigned balanced = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		start_threads(timer);
	for (size_t i = 0; i < THREADS; i++)
		wait_until_blocked(pid, i);
	while (!is_blocked(pid, pid))
		;
	assert_null(ss_target_open(pid, &target));
	ss_target_threads_init(&source, target);
	ss_thread_list_init(&threads, &ss_process_access.threads, &source);
	threads.sampled = true; /* none is on a CPU at a tick */
	assert_true(ss_thread_list_refresh(&threads));
	assert_int_equal(capture(&threads), THREADS + 1);
	for (unsigned tick = 0; tick < TICKS; tick++) {
		check_tick(&threads, pid, tick, &counts);
		balanced += threads.balance.known;
	}
	assert_true(balanced > TICKS / 2);
	print_message("%zu of %zu runs were not seen\n", counts.missed, counts.woken);
	assert_true(counts.missed < counts.woken / 2);
	ss_thread_list_deinit(&threads);
	ss_target_threads_deinit(&source);
	ss_target_close(target);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)munmap(shared, sizeof(*shared));
}

TEST(test_short_runs)
{
	check_process(false);
}

/* With a timer of its CPU time, the kernel keeps a sum of its own for the process. */
TEST(test_timer)
{
	check_process(true);
}
