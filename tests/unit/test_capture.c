#include "capture_child.h"
#include "data/pipeline.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>

static char read_state(pid_t pid)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat = {};
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	assert_int_equal(ss_io_read_path(-1, path, 4096, &text), 0);
	assert_true(ss_stat_parse(text.bytes, text.size, &stat));
	return stat.state;
}

TEST(test_all_threads)
{
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;
	size_t fds = 0;

	for (int i = 0; i < 2 * (SS_MODE_NO_STOP + 1); i++) {
		const struct ss_capture_options options = {
			.size = sizeof(options),
			.mode = (enum ss_mode)(i % (SS_MODE_NO_STOP + 1)),
		};
		struct ss_capture *capture = take(child, &options, &code);
		assert_non_null(capture);
		assert_int_equal(capture->threads.count, THREADS);
		for (size_t k = 0; k < THREADS; k++) {
			const struct ss_capture_thread *t = &capture->threads.items[k];
			/* One that does not sleep yet cannot be read without a stop. */
			if (options.mode == SS_MODE_NO_STOP && t->end == SS_END_RUNNING)
				continue;
			assert_true(t->live_count > 0 || t->stacks[0].size > 0);
			assert_int_equal(t->end, SS_END_ROOT);
		}
		ss_capture_free(capture);
		if (i == SS_MODE_NO_STOP) /* libunwind opens a pipe, once */
			fds = count_fds();
	}
	assert_int_equal(count_fds(), fds);
	while (read_state(child) != 'S') /* it must come to rest again */
		(void)sched_yield();
	stop(child);
}

/* What the caller's header did not have yet is not read. */
TEST(test_options_of_another_size)
{
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;
	struct ss_capture_options options = { .size = offsetof(struct ss_capture_options,
							       max_stack),
					      .mode = SS_MODE_STOP,
					      .timeout_ms = 2000,
					      .max_stack = 1,
					      .max_total = 1,
					      .filter = (ss_thread_filter *)1 };

	struct ss_capture *capture = take(child, &options, &code);
	assert_non_null(capture);
	assert_true(capture->threads.items[0].stacks[0].size > 1);
	ss_capture_free(capture);
	options.size = SIZE_MAX; /* a later header: what it knows more of is ignored */
	options.filter = NULL;
	capture = take(child, &options, &code);
	assert_non_null(capture);
	ss_capture_free(capture);
	options.mode = (enum ss_mode)77;
	assert_null(take(child, &options, &code));
	assert_int_equal(code, SS_ERROR_INVALID);
	stop(child);
}

static bool is_leader(void *data, pid_t tid, const char *name, char thread_state)
{
	(void)name;
	(void)thread_state;
	return tid == *(pid_t *)data;
}

TEST(test_filter)
{
	pid_t wanted = start(sleepers);
	pid_t child = wanted;
	enum ss_error_code code = SS_ERROR_SYSTEM;
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_STOP,
						    .filter = is_leader,
						    .filter_data = &wanted };

	struct ss_capture *capture = take(child, &options, &code);
	assert_non_null(capture);
	assert_int_equal(capture->threads.count, 1);
	assert_int_equal(capture->process.threads_stopped, 1);
	assert_int_equal(capture->threads.items[0].tid, child);
	ss_capture_free(capture);
	wanted = 1;
	assert_null(take(child, &options, &code));
	assert_int_equal(code, SS_ERROR_INVALID);
	stop(child);
}

/* Limits that no page and no alignment divides. */
TEST(test_limits)
{
	static const size_t limits[] = { 1, 15, 17, 100, 4095, 5001, 20003, 1048581 };
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;

	for (size_t i = 0; i < SS_ARRAY_SIZE(limits); i++) {
		const struct ss_capture_options options = { .size = sizeof(options),
							    .mode = SS_MODE_STOP,
							    .max_stack = 1001,
							    .max_total = limits[i] };
		struct ss_capture *capture = take(child, &options, &code);
		assert_non_null(capture);
		size_t limited = 0;
		for (size_t t = 0; t < capture->threads.count; t++) {
			const struct ss_capture_thread *thread =
				&capture->threads.items[t];
			assert_true(thread->stacks[0].size <= 1001);
			limited += thread->end == SS_END_LIMIT;
		}
		assert_true(capture->process.copied_bytes <= SS_MAX(limits[i], 16u));
		assert_true(limits[i] > 20000 || limited > 0);
		ss_capture_free(capture);
	}
	stop(child);
}

/* A handler on an alternate stack whose memory was used before. */
static void handle(int signal)
{
	(void)signal;
	(void)sleep_for_ever(NULL);
}

static int ready_of_handler;

static void on_signal(int signal)
{
	say_ready(ready_of_handler);
	handle(signal);
}

static void in_handler(int ready)
{
	static char memory[64 * 1024];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_ONSTACK };

	memset(memory, 0xff, sizeof(memory));
	ready_of_handler = ready;
	(void)sigaltstack(&stack, NULL);
	(void)sigaction(SIGUSR1, &action, NULL);
	(void)raise(SIGUSR1);
}

TEST(test_handler_on_used_stack)
{
	pid_t child = start(in_handler);
	enum ss_error_code code = SS_ERROR_SYSTEM;

	struct ss_capture *capture = take(child, NULL, &code);
	assert_non_null(capture);
	assert_true(capture->threads.items[0].stacks[0].size > 0);
	assert_true(capture->threads.items[0].stacks[1].size > 0);
	ss_capture_free(capture);
	stop(child);
}

/* From now on these calls fail with EPERM. */
static bool refuse(long first, long second)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)first, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = { .len = SS_ARRAY_SIZE(code), .filter = code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int capture_refused(pid_t target, long first, long second)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	const struct ss_capture_options stop = { .size = sizeof(stop),
						 .mode = SS_MODE_STOP };

	if (!refuse(first, second))
		return 77;
	struct ss_capture *capture = take(target, &stop, &code);
	if (!capture || capture->threads.count != THREADS)
		return 2;
	for (size_t i = 0; i < THREADS; i++) {
		const struct ss_capture_thread *thread = &capture->threads.items[i];
		if (thread->stacks[0].size < 256 || thread->end != SS_END_ROOT)
			return 3;
	}
	ss_capture_free(capture);
	return 0;
}

/* Without process_vm_readv by /proc/PID/mem; where that fails too, word by word. */
TEST(test_refused_calls)
{
	static const long calls[][2] = { { SYS_process_vm_readv, SYS_process_vm_readv },
					 { SYS_process_vm_readv, SYS_pread64 } };
	pid_t target = start(sleepers);

	for (size_t i = 0; i < SS_ARRAY_SIZE(calls); i++) {
		int status;
		pid_t child = fork();
		if (child == 0)
			_exit(capture_refused(target, calls[i][0], calls[i][1]));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	stop(target);
}

static void *spin(void *data)
{
	for (;;)
		__asm__ volatile("");
	return data;
}

/* A thread that has to wait for the only CPU that it may use when it is woken up. */
static void sleeper_without_cpu(int ready)
{
	const struct sched_param batch = {}; /* which does not preempt others */
	pthread_t thread;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0 ||
	    pthread_create(&thread, NULL, spin, NULL) != 0 ||
	    sched_setscheduler(0, SCHED_BATCH, &batch) != 0)
		_exit(1);
	say_ready(ready);
	(void)sleep_for_ever(NULL);
}

/* More memory of a stack can be copied when the thread is back in its call. */
TEST(test_extend_without_cpu)
{
	enum { ROUNDS = 20 };
	pid_t child = start(sleeper_without_cpu);
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_STOP,
						    .filter = is_leader,
						    .filter_data = &child };
	size_t count = 0;

	while (read_state(child) != 'S')
		(void)sched_yield();
	for (int i = 0; i < ROUNDS; i++) {
		_cleanup_(ss_target_cleanup) struct ss_target *target = NULL;
		struct ss_capture *capture = NULL;
		size_t grown = 0;
		assert_null(ss_target_open(child, &target));
		assert_null(ss_capture_take(target, &options, &capture));
		const struct ss_stack_request request = {
			.tid = child,
			.address = capture->threads.items[0].stacks[0].address,
		};
		assert_null(ss_capture_extend(capture, target, &options, &request, 1,
					      &grown));
		count += grown;
		ss_capture_free(capture);
	}
	assert_true(count > ROUNDS / 2); /* the limit may be short where much else runs */
	stop(child);
}

TEST(test_invalid_targets)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	assert_null(take(0, NULL, &code));
	assert_int_equal(code, SS_ERROR_INVALID);
	assert_null(take(-1, NULL, &code));
	assert_int_equal(code, SS_ERROR_INVALID);
	assert_null(take(INT32_MAX, NULL, &code));
	assert_int_equal(code, SS_ERROR_NO_PROCESS);
	assert_null(take(getpid(), NULL, &code));
	assert_int_equal(code, SS_ERROR_SELF);
	ss_target_close(NULL);
	ss_capture_free(NULL);
}
