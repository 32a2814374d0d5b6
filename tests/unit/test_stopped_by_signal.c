/*
 * Threads that signals stop and continue while they are attached: whoever reads the state of one that is
 * stopped finds T, as for one that is not attached; and no call returns that would not without the tool.
 */

#include "capture_child.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "capture/freeze.h"
#include "capture/observe.h"

struct stopped {
	struct ss_target *target;
	pid_t child;
	struct ss_tracee task;
	struct ss_task_list list;
	struct ss_freeze freeze;
	struct ss_capture_options options;
};

/* A group-stop is a stop for the tracer, and the thread is in state t. */
static void begin(struct stopped *stopped)
{
	*stopped = (struct stopped){ .child = start(sleepers) };
	struct ss_error *error = ss_target_open(stopped->child, &stopped->target);

	assert_null(error);
	assert_int_equal(kill(stopped->child, SIGSTOP), 0);
	assert_int_equal(waitpid(stopped->child, NULL, WUNTRACED), stopped->child);
	assert_int_equal(ptrace(PTRACE_SEIZE, stopped->child, 0, 0), 0);
	while (ss_target_peek_state(stopped->target, stopped->child) != 't')
		;
	stopped->task = (struct ss_tracee){ .tid = stopped->child,
					    .files.tid = stopped->child,
					    .attached = true,
					    .call.number = -1 };
	stopped->list = (struct ss_task_list){
		.items = { .items = &stopped->task, .count = 1, .capacity = 1 }
	};
	stopped->freeze = (struct ss_freeze){ .target = stopped->target,
					      .tasks = &stopped->list,
					      .options = &stopped->options };
}

static void end(struct stopped *stopped)
{
	stop(stopped->child);
	ss_target_close(stopped->target);
}

TEST(test_read)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct stopped stopped;

	begin(&stopped);
	ss_task_read(&stopped.task, stopped.target, &stopped.options, &text);
	assert_int_equal(stopped.task.state, 'T');
	stopped.task.state = '?';
	ss_task_read_again(&stopped.task, stopped.target, &stopped.options, &text);
	assert_int_equal(stopped.task.state, 'T');
	end(&stopped);
}

/* One that was in uninterruptible sleep. */
TEST(test_chosen)
{
	struct stopped stopped;

	begin(&stopped);
	stopped.task.phase = SS_TASK_CHOSEN;
	stopped.task.slow = true;
	ss_freeze_prepare(&stopped.freeze);
	assert_int_equal(stopped.task.state, 'T');
	assert_false(stopped.task.slow);
	end(&stopped);
}

/* One that has run since it was read without a stop. */
TEST(test_watched)
{
	struct stopped stopped;

	begin(&stopped);
	stopped.task.watched = true;
	stopped.task.run_count = UINT64_MAX;
	assert_int_equal(ss_observe_check(stopped.target, &stopped.list, NULL, NULL), 1);
	assert_int_equal(stopped.task.state, 'T');
	end(&stopped);
}

/* The races of a stop: a thread that was read in state T, and in a call that a stop would end with EINTR ---- */

/* Shared with the child. */
static atomic_uint *returns;

static void wait_for_events(int ready)
{
	struct epoll_event event;
	int epoll = epoll_create1(0);

	say_ready(ready);
	for (;;) {
		(void)epoll_wait(epoll, &event, 1, -1);
		atomic_fetch_add(returns, 1);
	}
}

static void begin_call(struct stopped *stopped, bool stop_first)
{
	returns = mmap(NULL, sizeof(*returns), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(returns != MAP_FAILED);
	*stopped = (struct stopped){ .child = start(wait_for_events) };
	struct ss_error *error = ss_target_open(stopped->child, &stopped->target);
	assert_null(error);
	while (ss_target_peek_state(stopped->target, stopped->child) != 'S')
		;
	if (stop_first) {
		assert_int_equal(kill(stopped->child, SIGSTOP), 0);
		while (ss_target_peek_state(stopped->target, stopped->child) != 'T')
			;
	}
	stopped->task = (struct ss_tracee){ .tid = stopped->child,
					    .files.tid = stopped->child,
					    .state = 'T',
					    .phase = SS_TASK_CHOSEN,
					    .call.number = -1 };
	stopped->list = (struct ss_task_list){
		.items = { .items = &stopped->task, .count = 1, .capacity = 1 }
	};
	stopped->freeze = (struct ss_freeze){ .target = stopped->target,
					      .tasks = &stopped->list,
					      .options = &stopped->options,
					      .status_fd = -1 };
}

static void attach(struct stopped *stopped)
{
	ss_stop_seize(&stopped->freeze, &stopped->task);
	assert_int_equal(stopped->task.phase, SS_TASK_SEIZED);
	ss_stop_interrupt(&stopped->freeze, &stopped->task);
}

static void poll_until_stopped(struct stopped *stopped)
{
	while (stopped->task.phase != SS_TASK_STOPPED)
		ss_stop_poll(&stopped->freeze, &stopped->task);
}

/* Ends when the thread sleeps in its call, and returns how often the call has returned until then. */
static unsigned finish_call(struct stopped *stopped, char state)
{
	while (ss_target_peek_state(stopped->target, stopped->child) != state)
		;
	unsigned count = atomic_load(returns);
	end(stopped);
	assert_int_equal(munmap(returns, sizeof(*returns)), 0);
	return count;
}

/* It is stopped without an interrupt, and remains in its group-stop. */
TEST(test_seize_in_group_stop)
{
	struct stopped stopped;

	begin_call(&stopped, true);
	attach(&stopped);
	assert_int_equal(stopped.task.phase, SS_TASK_STOPPED);
	assert_int_equal(stopped.task.state, 'T');
	assert_int_equal(stopped.task.signal, 0);
	ss_stop_release(&stopped.freeze, &stopped.task);
	assert_int_equal(finish_call(&stopped, 'T'), 0);
}

/* SIGCONT came before: it is not interrupted. */
TEST(test_continued_before)
{
	struct stopped stopped;

	begin_call(&stopped, false);
	attach(&stopped);
	assert_int_equal(stopped.task.phase, SS_TASK_SEIZED);
	ss_stop_poll(&stopped.freeze, &stopped.task);
	assert_int_equal(stopped.task.phase, SS_TASK_SEIZED);
	assert_int_equal(stopped.freeze.stopped, 0);
	assert_int_equal(finish_call(&stopped, 'S'), 0);
}

/* A lone SIGCONT stops a thread that is attached, although it was not in a group-stop. The call goes on. */
TEST(test_continued_after)
{
	struct stopped stopped;

	begin_call(&stopped, false);
	attach(&stopped);
	assert_int_equal(kill(stopped.child, SIGCONT), 0);
	poll_until_stopped(&stopped);
	assert_int_equal(stopped.task.signal, 0);
	ss_stop_release(&stopped.freeze, &stopped.task);
	assert_int_equal(finish_call(&stopped, 'S'), 0);
}

/* SIGCONT came between the attachment and the stop. */
TEST(test_group_stop_ends)
{
	struct stopped stopped;

	begin_call(&stopped, true);
	ss_stop_seize(&stopped.freeze, &stopped.task);
	assert_int_equal(kill(stopped.child, SIGCONT), 0);
	ss_stop_interrupt(&stopped.freeze, &stopped.task);
	poll_until_stopped(&stopped);
	ss_stop_release(&stopped.freeze, &stopped.task);
	/* The signals alone end the call once. */
	while (atomic_load(returns) == 0)
		;
	assert_int_equal(finish_call(&stopped, 'S'), 1);
}

/* A thread that went on, and that a signal stops between two turns: it is released, and one thread was
   stopped, also if the next turn stops it again. */
TEST(test_stopped_between_turns)
{
	struct stopped stopped;

	begin_call(&stopped, false);
	attach(&stopped);
	stopped.task.phase = SS_TASK_SEEN; /* as at the end of a turn */
	ss_freeze_release_continued(&stopped.freeze);
	assert_true(stopped.task.attached);
	assert_int_equal(kill(stopped.child, SIGSTOP), 0);
	while (stopped.task.attached)
		ss_freeze_release_continued(&stopped.freeze);
	assert_int_equal(stopped.task.phase, SS_TASK_SEEN);
	assert_true(stopped.task.stopped_ns > 0);
	assert_int_equal(stopped.freeze.late, 1);
	assert_int_equal(stopped.freeze.stopped, 1);
	/* The signal is delivered at the release. */
	while (ss_target_peek_state(stopped.target, stopped.child) != 'T')
		;
	stopped.task.phase = SS_TASK_CHOSEN;
	attach(&stopped);
	poll_until_stopped(&stopped);
	ss_stop_release(&stopped.freeze, &stopped.task);
	assert_int_equal(stopped.freeze.stopped, 1);
	(void)finish_call(&stopped, 'T');
}

/* Of a thread that another program traces, or that its tracer holds. */
TEST(test_not_attached)
{
	const struct ss_stat stat = { .state = 't' };
	struct ss_target target = {};
	struct ss_tracee task = {};

	assert_int_equal(ss_task_state_of(&task, &target, &stat), 't');
	task.attached = true;
	assert_int_equal(ss_task_state_of(&task, &target, &stat), 'T');
	target.held = true;
	assert_int_equal(ss_task_state_of(&task, &target, &stat), 't');
}
