/*
 * Threads that signals stop and continue while they are attached: whoever reads the state of one that is
 * stopped finds T, as for one that is not attached; and no call returns that would not without the tool.
 */

#include "capture_child.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include "base/clock.h"
#include "capture/attempt.h"
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
	stopped.task.state = 'D';
	ss_freeze_prepare(&stopped.freeze);
	assert_int_equal(stopped.task.state, 'T');
	end(&stopped);
}

/* One that has run since it was read without a stop. */
TEST(test_watched)
{
	struct stopped stopped;

	begin(&stopped);
	stopped.task.phase = SS_TASK_WATCHED;
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
	ss_freeze_release_between(&stopped.freeze);
	assert_true(stopped.task.attached);
	assert_int_equal(kill(stopped.child, SIGSTOP), 0);
	while (stopped.task.attached)
		ss_freeze_release_between(&stopped.freeze);
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

/* The same of threads of which something else was found meanwhile, until the capture thread ends. */
TEST(test_stopped_whatever_is_known)
{
	const enum ss_task_phase phases[] = { SS_TASK_EXCLUDED, SS_TASK_SLEPT,
					      SS_TASK_WORKER, SS_TASK_DENIED,
					      SS_TASK_GONE };

	for (size_t i = 0; i < SS_ARRAY_SIZE(phases); i++) {
		struct stopped stopped;
		begin_call(&stopped, false);
		attach(&stopped);
		stopped.task.phase = phases[i];
		assert_true(ss_freeze_release_late(&stopped.freeze));
		assert_int_equal(stopped.freeze.late, 0);
		assert_int_equal(kill(stopped.child, SIGSTOP), 0);
		while (ss_target_peek_state(stopped.target, stopped.child) != 't')
			;
		assert_false(ss_freeze_release_late(&stopped.freeze));
		assert_int_equal(stopped.task.phase, phases[i]);
		assert_int_equal(stopped.freeze.late, 1);
		(void)finish_call(&stopped, 'T');
	}
}

/* One that was interrupted and slept counts as asleep: its call goes on when it has stopped. */
TEST(test_slept_before_it_stopped)
{
	struct stopped stopped;

	begin_call(&stopped, false);
	stopped.task.state = 'S';
	attach(&stopped);
	assert_int_equal(stopped.task.phase, SS_TASK_INTERRUPTED);
	ss_task_enter(&stopped.task, SS_TASK_SLEPT);
	while (ss_target_peek_state(stopped.target, stopped.child) != 't')
		;
	assert_false(ss_freeze_release_late(&stopped.freeze));
	assert_int_equal(stopped.task.phase, SS_TASK_SLEPT);
	assert_int_equal(finish_call(&stopped, 'S'), 0);
}

/* Each of these stops it if it is attached, see above. */
static void continue_itself(int ready)
{
	const struct timespec pause = { .tv_nsec = 200 * 1000 };

	say_ready(ready);
	for (;;) {
		(void)nanosleep(&pause, NULL);
		(void)kill(getpid(), SIGCONT);
	}
}

/* For how long the thread stood still in the pause between two turns, and how long both took. phase: as
   at the end of the first turn. SEEN: it was read in state T, and went on. */
static uint64_t pause_between_turns(struct ss_target *target,
				    const struct ss_capture_options *options,
				    enum ss_task_phase phase, uint64_t *ret_elapsed_ns)
{
	__attribute__((cleanup(ss_attempt_deinit))) struct ss_attempt attempt = {
		.target = target,
		.options = options,
		.freeze = { .status_fd = -1 },
		.memory = { .mem_fd = -1, .pagemap_fd = -1 },
		.maps_fd = -1,
	};
	bool stop;

	assert_null(ss_attempt_copy(&attempt, &stop));
	assert_int_equal(attempt.tasks.items.count, 1);
	struct ss_tracee *task = &attempt.tasks.items.items[0];
	assert_int_equal(ptrace(PTRACE_SEIZE, task->tid, 0, 0), 0);
	task->phase = phase;
	task->interrupted = phase == SS_TASK_INTERRUPTED;
	task->state = task->interrupted ? 'S' : 'T';
	task->attached = true;
	task->running_ns = ss_now_ns();
	if (task->interrupted)
		assert_int_equal(ptrace(PTRACE_INTERRUPT, task->tid, 0, 0), 0);
	attempt.copied = true;
	attempt.moved = 1;
	attempt.fragile = 0;
	uint64_t begin_ns = ss_now_ns();
	assert_null(ss_attempt_stop(&attempt));
	*ret_elapsed_ns = ss_now_ns() - begin_ns;
	/* Its tracer is this thread, which does not end. */
	while (attempt.tasks.items.items[0].attached)
		(void)ss_freeze_release_late(&attempt.freeze);
	return attempt.tasks.items.items[0].stopped_ns;
}

/* Before all threads are stopped again, those are found that run every few milliseconds. What a signal or
   a late interrupt stops in that time is soon released, unless this program gets no CPU. */
TEST(test_pause_between_turns)
{
	enum { PAUSE_MS = 5, SOON_MS = 4, TRIES = 100 };
	const struct ss_capture_options options = { .size = sizeof(options),
						    .mode = SS_MODE_AUTO,
						    .timeout_ms = 1000,
						    .max_stack = 4096,
						    .max_total = 1 << 20 };
	const enum ss_task_phase phases[] = { SS_TASK_SEEN, SS_TASK_INTERRUPTED };

	for (size_t p = 0; p < SS_ARRAY_SIZE(phases); p++) {
		uint64_t stopped_ns = UINT64_MAX;
		for (int i = 0; i < TRIES && stopped_ns >= SOON_MS * SS_NS_PER_MS; i++) {
			struct ss_target *target = NULL;
			pid_t child = start(continue_itself);
			uint64_t elapsed_ns;
			assert_null(ss_target_open(child, &target));
			stopped_ns = pause_between_turns(target, &options, phases[p],
							 &elapsed_ns);
			assert_true(elapsed_ns >= PAUSE_MS * SS_NS_PER_MS);
			assert_true(stopped_ns > 0);
			ss_target_close(target);
			stop(child);
		}
		assert_true(stopped_ns < SOON_MS * SS_NS_PER_MS);
	}
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
