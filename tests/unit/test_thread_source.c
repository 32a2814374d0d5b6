/*
 * Which threads have run, of a real process: threads that wake up, run for a microsecond and wait
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sampling/thread_source.h"
#include "target/target.h"

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

static void check_tick(struct ss_thread_list *threads, pid_t pid, unsigned tick)
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
		if (!thread || !thread->due)
			fail_msg("tick %u: thread %zu has run", tick, woken[i]);
	}
	assert_true(capture(threads) <= count);
}

static void check_process(bool timer)
{
	struct ss_target_threads source;
	struct ss_thread_list threads;
	struct ss_target *target = NULL;
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
	ss_thread_list_init(&threads, &source.source);
	threads.sampled = true; /* none is on a CPU at a tick */
	assert_true(ss_thread_list_refresh(&threads));
	assert_int_equal(capture(&threads), THREADS + 1);
	for (unsigned tick = 0; tick < TICKS; tick++) {
		check_tick(&threads, pid, tick);
		balanced += threads.balance.known;
	}
	assert_true(balanced > TICKS / 2);
	ss_thread_list_deinit(&threads);
	ss_target_threads_deinit(&source);
	ss_target_close(target);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)munmap(shared, sizeof(*shared));
}

/* With this option the kernel may not count a time on a CPU that is shorter than the interrupt
   before it, so the next tick may not see it. Without a readable file: false. */
static bool takes_interrupts_from_time(void)
{
	bool found = false;
	struct utsname name;
	char path[sizeof(name.release) + 16];
	char line[256];

	assert_int_equal(uname(&name), 0);
	(void)snprintf(path, sizeof(path), "/boot/config-%s", name.release);
	gzFile file = gzopen("/proc/config.gz", "r");
	if (!file)
		file = gzopen(path, "r"); /* plain text is read, too */
	while (file && !found && gzgets(file, line, sizeof(line)))
		found = strcmp(line, "CONFIG_IRQ_TIME_ACCOUNTING=y\n") == 0;
	if (file)
		(void)gzclose(file);
	return found;
}

static void test_short_runs(void **state)
{
	(void)state;
	if (takes_interrupts_from_time())
		skip();
	check_process(false);
}

/* With a timer of its CPU time, the kernel keeps a sum of its own for the process. */
static void test_timer(void **state)
{
	(void)state;
	if (takes_interrupts_from_time())
		skip();
	check_process(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_runs),
		cmocka_unit_test(test_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
