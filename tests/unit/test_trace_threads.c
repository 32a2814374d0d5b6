/*
 * Which threads of a trace execute another program than the target: many of them, and after
 * records were lost.
 */

#include "unit.h"

#include "trace/stacks.h"

enum { COUNT = 10000, FIRST = 1000 };

static struct ss_trace_thread *get(struct ss_trace_threads *threads, pid_t pid, pid_t tid)
{
	struct ss_trace_thread *thread = ss_trace_threads_get(threads, pid, tid);

	assert_non_null(thread);
	assert_int_equal(thread->pid, pid);
	assert_int_equal(thread->tid, tid);
	return thread;
}

TEST(test_many_programs)
{
	struct ss_trace_threads threads = {};

	for (pid_t pid = FIRST; pid < FIRST + COUNT; pid++)
		get(&threads, pid, pid)->other_program = pid % 2;
	for (pid_t pid = FIRST; pid < FIRST + COUNT; pid++)
		assert_int_equal(get(&threads, pid, pid)->other_program, pid % 2);
	ss_trace_threads_deinit(&threads);
}

/* A thread whose start was not seen executes the program of its process; another process that gets the id
   of one that has ended does not. */
TEST(test_lost_start)
{
	struct ss_trace_threads threads = {};

	get(&threads, FIRST, FIRST)->other_program = true;
	assert_true(get(&threads, FIRST, FIRST + 1)->other_program);
	assert_false(get(&threads, FIRST + 2, FIRST + 3)->other_program);
	ss_trace_threads_remove(&threads, get(&threads, FIRST, FIRST));
	assert_true(get(&threads, FIRST, FIRST + 1)->other_program);
	assert_false(get(&threads, FIRST, FIRST)->other_program);
	ss_trace_threads_deinit(&threads);
}
