/* Mode AUTO: what runs is stopped, what is blocked is watched; and completing it. */
#include "capture_child.h"
#include "data/pipeline.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>

enum { TRIES = 20, SPINNERS = 8 };

static int gate[2];

static void *spin(void *data)
{
	for (;;)
		__asm__ volatile("" ::: "memory");
	return data;
}

static void spinner_and_sleepers(int ready)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, spin, NULL) != 0)
		_exit(1);
	for (int i = 2; i < THREADS; i++)
		start_thread();
	say_ready(ready);
	(void)sleep_for_ever(NULL);
}

static __attribute__((noinline)) void first_wait(void)
{
	char byte;

	if (read(gate[0], &byte, 1) != 1)
		_exit(1);
}

static __attribute__((noinline)) void second_wait(void)
{
	for (;;)
		(void)poll(NULL, 0, -1);
}

static void two_waits(int ready)
{
	say_ready(ready);
	first_wait();
	second_wait();
}

/* Whether every thread but so many is in that system call. */
static bool all_in(pid_t pid, long number, size_t others)
{
	_cleanup_(ss_target_cleanup) struct ss_target *target = NULL;
	_cleanup_buffer_ struct ss_buffer text = {};
	char path[64];

	assert_null(ss_target_open(pid, &target));
	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));) {
		struct ss_syscall_text call;
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (tid > 0 && (!ss_target_read_task(target, tid, "syscall", &text) ||
				!ss_syscall_parse(text.bytes, text.size, &call) ||
				call.number != number))
			others--;
	}
	(void)closedir(dir);
	return others == 0;
}

static void await_call(pid_t pid, long number, size_t others)
{
	while (!all_in(pid, number, others))
		(void)sched_yield();
}

static bool has_schedstat(void)
{
	return access("/proc/self/schedstat", R_OK) == 0;
}

static const struct ss_capture_options automatic = { .size = sizeof(automatic),
						     .mode = SS_MODE_AUTO };

/* A capture of one moment with so many stops. On a machine under load a thread may not stop in time, and is
   copied later; and a sleeper may not sleep yet. */
static struct ss_capture *
take_atomic(pid_t child, const struct ss_capture_options *options, unsigned stops)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;
	struct ss_capture *capture = take(child, options, &code);

	for (int i = 1;
	     i < TRIES && capture &&
	     (!capture->process.consistent || capture->process.threads_stopped != stops);
	     i++) {
		ss_capture_free(capture);
		capture = take(child, options, &code);
	}
	return capture;
}

TEST(test_sleepers_are_not_stopped)
{
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;

	if (!has_schedstat())
		skip();
	await_call(child, SYS_pause, 0);
	struct ss_capture *capture = take(child, &automatic, &code);
	assert_non_null(capture);
	assert_int_equal(capture->process.mode, SS_MODE_AUTO);
	assert_int_equal(capture->process.threads_stopped, 0);
	assert_int_equal(capture->process.stopped_ns, 0);
	assert_true(capture->process.consistent);
	assert_int_equal(capture->threads.count, THREADS);
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		assert_int_equal(thread->stopped_ns, 0);
		assert_int_equal(thread->end, SS_END_ROOT);
		assert_int_equal(thread->syscall.number, SYS_pause);
		assert_true(thread->stacks[0].size > 0);
		assert_true(thread->consistent);
	}
	ss_capture_free(capture);
	stop(child);
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a;
	pid_t y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Blocked threads are stopped if the caller knows that their registers are needed. */
TEST(test_listed_threads_are_stopped)
{
	struct ss_capture_options options = automatic;
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;
	pid_t listed[3] = { 1 };

	if (!has_schedstat())
		skip();
	await_call(child, SYS_pause, 0);
	struct ss_capture *first = take(child, &automatic, &code);
	assert_non_null(first);
	listed[1] = first->threads.items[0].tid;
	listed[2] = first->threads.items[THREADS - 1].tid;
	qsort(listed, 3, sizeof(*listed), compare_pids);
	options.stop = listed;
	options.stop_count = 3;
	struct ss_capture *capture = take_atomic(child, &options, 2);
	assert_non_null(capture);
	assert_int_equal(capture->process.threads_stopped, 2);
	assert_true(capture->process.consistent);
	assert_int_equal(capture->threads.count, THREADS);
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		bool is_listed = thread->tid == listed[1] || thread->tid == listed[2];
		assert_int_equal(thread->stopped_ns > 0, is_listed);
	}
	ss_capture_free(first);
	ss_capture_free(capture);
	stop(child);
}

TEST(test_running_threads_are_stopped)
{
	pid_t child = start(spinner_and_sleepers);

	if (!has_schedstat())
		skip();
	await_call(child, SYS_pause, 1);
	struct ss_capture *capture = take_atomic(child, &automatic, 1);
	assert_non_null(capture);
	assert_int_equal(capture->process.threads_stopped, 1);
	assert_true(capture->process.consistent);
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		assert_int_equal(thread->end, SS_END_ROOT);
		assert_true(thread->stacks[0].size > 0);
		assert_int_equal(thread->stopped_ns > 0, thread->syscall.number < 0);
	}
	ss_capture_free(capture);
	stop(child);
}

static struct ss_error *complete(struct ss_capture *capture, pid_t pid, const pid_t *tids,
				 size_t count)
{
	_cleanup_(ss_target_cleanup) struct ss_target *target = NULL;
	struct ss_error *error = ss_target_open(pid, &target);

	return error ? error :
		       ss_capture_complete(capture, target, &automatic, tids, count);
}

/* All registers of the threads that were named, and still one moment. */
TEST(test_completed)
{
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;

	if (!has_schedstat())
		skip();
	await_call(child, SYS_pause, 0);
	struct ss_capture *capture = take(child, &automatic, &code);
	struct ss_capture *copy = take(child, &automatic, &code);
	static uint8_t added[64 << 10];
	assert_non_null(capture);
	assert_non_null(copy);
	assert_int_equal(ss_capture_copy_completion(capture, added, sizeof(added)), 0);
	const pid_t tids[] = { 1, capture->threads.items[7].tid, child };
	size_t fds = count_fds();
	assert_null(complete(capture, child, tids, SS_ARRAY_SIZE(tids)));
	assert_int_equal(count_fds(), fds);
	assert_true(capture->process.consistent);
	assert_int_equal(capture->process.threads_stopped, 2);
	assert_true(capture->process.stopped_ns > 0);
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		uint64_t fp;
		bool wanted = thread->tid == child || i == 7;
		assert_int_equal(ss_regs_get(&thread->regs, ss_arch_host.fp, &fp),
				 wanted);
		assert_int_equal(thread->stopped_ns > 0, wanted);
		assert_int_equal(thread->thread_pointer != 0, wanted);
	}
	/* A copy of the capture gets the same. */
	assert_int_equal(ss_capture_copy_completion(capture, NULL, 0), 0);
	size_t size = ss_capture_copy_completion(capture, added, sizeof(added));
	assert_true(size > 0);
	assert_false(ss_capture_apply_completion(copy, added, size - 1));
	assert_true(ss_capture_apply_completion(copy, added, size));
	assert_int_equal(copy->process.threads_stopped, 2);
	assert_int_equal(copy->process.stopped_ns, capture->process.stopped_ns);
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		const struct ss_capture_thread *copied = &copy->threads.items[i];
		assert_memory_equal(&copied->regs, &thread->regs, sizeof(thread->regs));
		assert_int_equal(copied->stopped_ns, thread->stopped_ns);
		assert_int_equal(copied->thread_pointer, thread->thread_pointer);
	}
	ss_capture_free(copy);
	/* Once more, also with one that is complete; and with none. */
	assert_null(complete(capture, child, tids + 1, 0));
	const pid_t more[] = { child, capture->threads.items[9].tid };
	assert_null(complete(capture, child, more, SS_ARRAY_SIZE(more)));
	assert_int_equal(capture->process.threads_stopped, 3);
	ss_capture_free(capture);
	stop(child);
}

static void use_cpu(size_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		_exit(1);
}

/* The first and the last CPU that may be used. */
static bool find_two_cpus(size_t cpus[2])
{
	cpu_set_t set;
	int count = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[count++ > 0] = cpu;
	return count > 1;
}

static size_t busy_cpus[2];

/* The leader waits long for its CPU, where other threads spin: each gets a time slice first. */
static void late_and_prompt(int ready)
{
	const struct sched_param none = {};
	pthread_t thread;

	use_cpu(busy_cpus[1]);
	start_thread();
	use_cpu(busy_cpus[0]);
	for (int i = 0; i < SPINNERS; i++)
		if (pthread_create(&thread, NULL, spin, NULL) != 0)
			_exit(1);
	if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
		_exit(1);
	say_ready(ready);
	(void)sleep_for_ever(NULL);
}

/* How long the thread has waited for a CPU. */
static uint64_t waited_ns(pid_t tid)
{
	unsigned long long ran;
	unsigned long long waited;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%llu %llu", &ran, &waited), 2);
	(void)fclose(file);
	return waited;
}

static pid_t other_sleeper(const struct ss_capture *capture, pid_t than)
{
	for (size_t i = 0; i < capture->threads.count; i++)
		if (capture->threads.items[i].syscall.number == SYS_pause &&
		    capture->threads.items[i].tid != than)
			return capture->threads.items[i].tid;
	fail_msg("no other thread sleeps");
	return 0;
}

/* Threads that sleep are released one by one: none stands still while another one has to wait for
   the CPU on which it will stop. */
TEST(test_completed_one_by_one)
{
	/* the leader is late once in ten times or so */
	enum {
		LATE_TRIES = 100,
		LATE = 3,
		LATE_NS = 10 * 1000 * 1000,
		PROMPT_NS = LATE_NS / 2
	};
	const struct ss_capture_options unstopped = { .size = sizeof(unstopped),
						      .mode = SS_MODE_NO_STOP };
	enum ss_error_code code = SS_ERROR_SYSTEM;
	int late = 0;
	int prompt = 0;

	if (!has_schedstat() || !find_two_cpus(busy_cpus))
		skip();
	pid_t child = start(late_and_prompt);
	for (int i = 0; i < LATE_TRIES && late < LATE; i++) {
		await_call(child, SYS_pause, SPINNERS);
		struct ss_capture *capture = take(child, &unstopped, &code);
		assert_non_null(capture);
		const pid_t tids[] = { child, other_sleeper(capture, child) };
		uint64_t before_ns = waited_ns(child);
		assert_null(complete(capture, child, tids, SS_ARRAY_SIZE(tids)));
		if (waited_ns(child) - before_ns > LATE_NS) {
			late++;
			prompt += find_thread(capture, tids[1])->stopped_ns < PROMPT_NS;
		}
		ss_capture_free(capture);
	}
	stop(child);
	if (late < LATE)
		skip();
	assert_in_range(prompt, LATE / 2 + 1, LATE); /* others run here, too */
}

/* It went on in between: what is taken over is whole, and of another moment. */
TEST(test_completed_too_late)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	if (!has_schedstat())
		skip();
	assert_int_equal(pipe(gate), 0);
	pid_t child = start(two_waits);
	await_call(child, SYS_read, 0);
	struct ss_capture *capture = take(child, &automatic, &code);
	assert_non_null(capture);
	const struct ss_capture_thread *thread = &capture->threads.items[0];
	uint64_t pc = ss_regs_pc(&ss_arch_host, &thread->regs);
	static uint8_t added[64 << 10];
	assert_int_equal(thread->syscall.number, SYS_read);
	assert_int_equal(write(gate[1], "!", 1), 1);
	await_call(child, SYS_poll, 0);
	assert_null(complete(capture, child, &child, 1));
	assert_false(capture->process.consistent);
	assert_int_equal(ss_capture_copy_completion(capture, added, sizeof(added)), 0);
	assert_true(thread->consistent);
	assert_int_equal(thread->syscall.number, SYS_poll);
	assert_int_not_equal(ss_regs_pc(&ss_arch_host, &thread->regs), pc);
	assert_true(thread->stacks[0].size > 0);
	assert_true(ss_regs_sp(&ss_arch_host, &thread->regs) -
			    thread->stacks[0].address <=
		    ss_arch_host.red_zone);
	ss_capture_free(capture);
	stop(child);
	(void)close(gate[0]);
	(void)close(gate[1]);
}

/* A process that is gone cannot be completed, and the capture is as it was. */
TEST(test_completed_after_its_end)
{
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;
	struct ss_target *target = NULL;
	struct ss_capture *capture = take(child, &automatic, &code);

	assert_non_null(capture);
	assert_null(ss_target_open(child, &target));
	stop(child);
	struct ss_error *error =
		ss_capture_complete(capture, target, &automatic, &child, 1);
	assert_int_equal(ss_error_code(error), SS_ERROR_NO_PROCESS);
	ss_error_free(error);
	assert_int_equal(capture->threads.count, THREADS);
	ss_capture_free(capture);
	ss_target_close(target);
}
