/*
 * A thread that is attached, and that a signal has stopped: whoever reads its state finds T, as for
 * one that is not attached.
 */

#include "capture_child.h"

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
