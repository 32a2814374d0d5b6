/*
 * Captures of processes that end, begin another program, or make and end threads at that
 * very time. STACKSNAP_TRIES: all tries, otherwise a quarter of them.
 *
 * ctest: tries=1
 */
#include "capture_child.h"

#include <time.h>

static int often(int count)
{
	return getenv("STACKSNAP_TRIES") ? count : count / 4;
}

/* The end of a child is for its parent to ask, and that is us. */
static void ends_soon(int ready)
{
	start_thread();
	say_ready(ready);
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	for (long i = 0; i < ts.tv_nsec % 60000; i++)
		__asm__ volatile("pause");
}

TEST(test_child_that_ends)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	for (int i = often(200); i > 0; i--) {
		pid_t child = start(ends_soon);
		int status = 0;
		struct ss_capture *capture = take(child, NULL, &code);
		if (capture)
			assert_true(capture->threads.count > 0);
		else
			assert_true(code == SS_ERROR_NO_PROCESS ||
				    code == SS_ERROR_ZOMBIE);
		ss_capture_free(capture);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), EXIT_STATUS);
	}
}

static const struct ss_capture_options stop_all = { .size = sizeof(stop_all),
						    .mode = SS_MODE_STOP };

static volatile pid_t other_child;
static volatile sig_atomic_t reaped;

static void reap(int signal)
{
	(void)signal;
	reaped |= waitpid(other_child, NULL, WNOHANG) == other_child;
}

/* Another child ends during a capture: its SIGCHLD must come. */
TEST(test_signals_of_other_children)
{
	const struct sigaction action = { .sa_handler = reap, .sa_flags = SA_RESTART };
	struct sigaction before;
	pid_t child = start(sleepers);
	enum ss_error_code code = SS_ERROR_SYSTEM;

	for (int i = often(100); i > 0; i--) {
		siginfo_t info = {};
		reaped = 0;
		other_child = start(ends_soon);
		assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
		while (!reaped) {
			ss_capture_free(take(child, &stop_all, &code));
			/* If it has ended by now, the handler has run by now. */
			(void)waitid(P_PID, (id_t)other_child, &info,
				     WEXITED | WNOWAIT | WNOHANG);
			assert_true(reaped || info.si_pid == 0);
		}
		assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
	}
	stop(child);
}

static void *end_at_once(void *data)
{
	return data;
}

static void churns(int ready)
{
	say_ready(ready);
	for (;;) {
		pthread_t threads[8];
		for (int i = 0; i < 8; i++)
			if (pthread_create(&threads[i], NULL, end_at_once, NULL) != 0)
				_exit(1);
		for (int i = 0; i < 8; i++)
			(void)pthread_join(threads[i], NULL);
	}
}

TEST(test_threads_that_come_and_go)
{
	pid_t child = start(churns);
	enum ss_error_code code = SS_ERROR_SYSTEM;
	size_t fds = count_fds();
	const int tries = often(100);
	int whole = 0;

	for (int i = 0; i < tries; i++) {
		struct ss_capture *capture = take(child, NULL, &code);
		assert_non_null(capture);
		whole += find_thread(capture, child)->end == SS_END_ROOT;
		ss_capture_free(capture);
	}
	/* It sleeps uninterruptibly now and then, but never for long. */
	assert_true(whole >= tries * 9 / 10);
	assert_int_equal(count_fds(), fds);
	stop(child);
}

#define EXECUTES "UNIT_CHANGING_EXECUTES" /* in the environment of such a child */

/* It executes itself for ever, before there is a test. */
static void __attribute__((constructor)) execute_again(void)
{
	if (getenv(EXECUTES)) {
		(void)execl("/proc/self/exe", "unit_changing", NULL);
		_exit(1);
	}
}

static void execs(int ready)
{
	say_ready(ready);
	(void)setenv(EXECUTES, "1", 1);
	execute_again();
}

/* Each capture is of one program: its stack pointer lies in one of its areas. */
TEST(test_exec)
{
	pid_t child = start(execs);
	enum ss_error_code code = SS_ERROR_SYSTEM;
	int captures = 0;

	for (int i = often(100); i > 0; i--) {
		struct ss_capture *capture = take(child, NULL, &code);
		if (!capture) {
			assert_int_equal(code, SS_ERROR_CHANGED);
			continue;
		}
		const struct ss_capture_thread *thread = &capture->threads.items[0];
		if (thread->stacks[0].size > 0 &&
		    ss_regs_sp(&ss_arch_host, &thread->regs) != 0) {
			assert_non_null(ss_capture_find_area(
				capture, ss_regs_sp(&ss_arch_host, &thread->regs)));
			captures++;
		}
		ss_capture_free(capture);
	}
	assert_true(captures > 0);
	stop(child);
}

TEST(test_killed)
{
	enum ss_error_code code = SS_ERROR_SYSTEM;

	for (int i = 0; i < 50; i += 50 / often(50)) {
		pid_t child = start(sleepers);
		pid_t killer = fork();
		if (killer == 0) {
			for (volatile int n = 0; n < i * 2000; n++)
				;
			(void)kill(child, SIGKILL);
			_exit(0);
		}
		struct ss_capture *capture = take(child, NULL, &code);
		if (!capture)
			assert_true(code == SS_ERROR_NO_PROCESS ||
				    code == SS_ERROR_ZOMBIE);
		ss_capture_free(capture);
		int status;
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(waitpid(killer, NULL, 0), killer);
	}
}
