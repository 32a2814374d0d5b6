#include "capture/freeze.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

enum {
	SEIZE_PASSES = 16,
	APPEAR_PASSES = 8,
	FEW = 8,
	TOGETHER = 32, /* threads that are all interrupted before any is waited for */
	/* Of sleepers that wake up on a running thread's CPU; measured. */
	STOPS_AT_ONCE = 16,
	RELEASES_AT_ONCE = 32,
	NAP_NS = 20 * 1000,
	EACH_NS = 4 * 1000, /* wake up, run to the stop, sleep */
	LOOK_NS = 1000 * 1000,
	/* Only what waits longer than this is looked at more closely. */
	LATE_NS = 2 * 1000 * 1000,
	LATE_STEP_NS = 5 * 1000 * 1000,
	/*
	 * How long threads that have stopped are held for those that have not: on a
	 * machine with more to run than CPUs, a runnable thread may have to wait for
	 * its turn before it can stop.
	 */
	ROUND_NS = 20 * 1000 * 1000,
};

uint64_t ss_freeze_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail: the clock exists */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void seize(struct ss_task *task)
{
	if (ptrace(PTRACE_SEIZE, task->tid, 0, 0) == 0) {
		task->phase = SS_TASK_SEIZED;
		return;
	}
	task->seize_errno = errno;
	task->phase = task->seize_errno == ESRCH ? SS_TASK_GONE : SS_TASK_REFUSED;
}

void ss_freeze_seize(struct ss_freeze *freeze)
{
	struct ss_task_list *tasks = freeze->tasks;
	_cleanup_text_ struct ss_text text = {};
	size_t done = 0;

	for (int pass = 0; pass < SEIZE_PASSES; pass++) {
		size_t wanted = ss_tasks_count_now(freeze->target);
		if (!ss_tasks_reserve(tasks, tasks->items.count + wanted * 2 + 64))
			return;
		if (ss_tasks_scan(tasks, freeze->target) == 0 && tasks->unseen == 0)
			return;
		for (; done < tasks->items.count; done++) {
			struct ss_task *task = &tasks->items.items[done];
			ss_task_read(task, freeze->target, freeze->options, &text);
			if (task->phase == SS_TASK_SEEN && !task->watched)
				seize(task);
		}
	}
}

void ss_freeze_seize_again(struct ss_freeze *freeze, bool all)
{
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if ((all && task->phase == SS_TASK_RELEASED) ||
		    (task->phase == SS_TASK_SEEN && !task->watched))
			seize(task);
	}
	freeze->rounds = all ? 0 : freeze->rounds + 1;
}

/* Reads the registers, and keeps the stop from being seen as EINTR. */
static bool collect_registers(struct ss_freeze *freeze, struct ss_task *task)
{
	struct iovec iov = { &task->kernel, sizeof(task->kernel) };

	if (ptrace(PTRACE_GETREGSET, task->tid, NT_PRSTATUS, &iov) != 0)
		return false;
	if (iov.iov_len != sizeof(task->kernel)) {
		freeze->foreign = true;
		return true;
	}
	struct ss_syscall made;
	ss_arch_syscall(&task->kernel, &made);
	task->runs = task->runs || made.number < 0;
	if (ss_arch_cure_eintr(&task->kernel)) {
		iov.iov_len = sizeof(task->kernel);
		/* If it fails, the thread was killed: nobody is left to see EINTR. */
		(void)ptrace(PTRACE_SETREGSET, task->tid, NT_PRSTATUS, &iov);
	}
	return true;
}

/* How a process ended is for its parent to ask, and that may be our own program: it
   must not be asked here. Of other threads nobody but a tracer can. */
static bool may_reap(const struct ss_freeze *freeze, const struct ss_task *task)
{
	return task->tid != freeze->target->pid;
}

/*
 * Whether a thread that was not stopped a moment ago has ended; if so it is reaped,
 * where that is ours to do. A tracer is told of stops, too, whether it asks for them or
 * not, and one that came in between must not be taken: the kernel would take its signal
 * as handed to us (wait_task_stopped() clears it), and if we were killed before the
 * release, it would be lost.
 */
static bool has_ended(const struct ss_freeze *freeze, const struct ss_task *task)
{
	enum { LOOK = WEXITED | WNOHANG | __WALL };
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)task->tid, &info, LOOK | WNOWAIT) != 0)
		return true;
	if (info.si_pid == 0 || info.si_code == CLD_TRAPPED)
		return false;
	if (may_reap(freeze, task))
		(void)waitid(P_PID, (id_t)task->tid, &info, LOOK); /* it has ended */
	return true;
}

/*
 * Takes in a stop, if there is one. The kernel is asked for the registers, which it
 * gives of a stopped thread only (ESRCH); not by waitpid(), whose answer any other
 * thread of the program that waits for children would take away.
 */
static void poll_task(struct ss_freeze *freeze, struct ss_task *task)
{
	siginfo_t info;

	if (!collect_registers(freeze, task)) {
		if (has_ended(freeze, task))
			task->phase = SS_TASK_GONE;
		task->running_ns = ss_freeze_now();
		return;
	}
	task->phase = SS_TASK_STOPPED;
	freeze->stopped += task->stopped_ns == 0;
	/* If this is not our stop, it is a signal on its way in: it is handed on at the
	   release. A group-stop is an event as ours, and stays in force by itself. */
	if (ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) == 0 &&
	    info.si_code >> 8 != PTRACE_EVENT_STOP)
		task->signal = info.si_signo;
}

/* Takes in what has stopped of a class. How many have not, and are waited for. */
static size_t poll_class(struct ss_freeze *freeze, bool runs)
{
	size_t late = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_INTERRUPTED || task->runs != runs)
			continue;
		poll_task(freeze, task);
		late += task->phase == SS_TASK_INTERRUPTED && !task->slow;
	}
	return late;
}

/*
 * What is in uninterruptible sleep by now will not stop: nobody waits for it. This
 * opens files within the freeze; but only when the freeze waits for a late thread,
 * so nothing is delayed by it.
 */
static void give_up_sleeping(struct ss_freeze *freeze)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_stat stat;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_INTERRUPTED || task->slow)
			continue;
		if (!ss_target_read_stat(freeze->target, task->tid, &text, &stat))
			continue;
		/* Anything else is the thread on its way to our stop: not its state. */
		task->slow = stat.state == 'D' || stat.state == 'Z' || stat.state == 'X';
		if (task->slow)
			task->state = stat.state;
	}
}

/*
 * Blocks for a while. Few threads: until SIGCHLD, which comes with a stop and which
 * this thread has blocked (another thread of the program may take it away, hence the
 * limit). Many: as long as all of them need for their way to the stop; waking earlier
 * would, at SCHED_FIFO, take the CPU from the very threads that are waited for.
 */
static void wait_for_stops(struct ss_freeze *freeze, size_t late)
{
	struct timespec ts = { .tv_nsec = LOOK_NS };
	sigset_t set;

	if (late > FEW) {
		ts.tv_nsec = (long)SS_MIN(late * EACH_NS, (size_t)LATE_NS);
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
		return;
	}
	(void)sigemptyset(&set); /* neither fails with a valid signal */
	(void)sigaddset(&set, SIGCHLD);
	/* Late or not: the caller looks. */
	freeze->took_sigchld |= sigtimedwait(&set, NULL, &ts) == SIGCHLD;
}

/* Waits until all of a class have stopped, but for those that will not. */
static void wait_class(struct ss_freeze *freeze, bool runs)
{
	uint64_t look_ns = ss_freeze_now() + LATE_NS;
	size_t late;

	while ((late = poll_class(freeze, runs)) > 0) {
		uint64_t now = ss_freeze_now();
		if (now >= freeze->round_ns)
			return;
		/* Few only: looking at many takes longer than they need to stop. */
		if (late <= FEW && now >= look_ns) {
			give_up_sleeping(freeze);
			look_ns = ss_freeze_now() + LATE_STEP_NS;
		}
		wait_for_stops(freeze, late);
	}
}

/* Sleepers that wake up where a thread of the target runs hold it up: only some at a
   time, so that it gets to run in between. */
static void interrupt_class(struct ss_freeze *freeze, bool runs)
{
	unsigned disturbing = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_SEIZED || task->runs != runs)
			continue;
		task->running_ns = ss_freeze_now();
		task->phase = ptrace(PTRACE_INTERRUPT, task->tid, 0, 0) == 0 ?
				      SS_TASK_INTERRUPTED :
				      SS_TASK_GONE;
		disturbing += task->disturbs;
		if (task->disturbs && disturbing % STOPS_AT_ONCE == 0)
			wait_class(freeze, runs);
	}
}

static size_t count_alive(const struct ss_task_list *tasks)
{
	size_t alive = 0;

	for (size_t i = 0; i < tasks->items.count; i++)
		alive += tasks->items.items[i].phase != SS_TASK_GONE;
	return alive;
}

/* Threads that were made between the last listing and the stop. */
static void stop_newcomers(struct ss_freeze *freeze)
{
	struct ss_task_list *tasks = freeze->tasks;

	for (int pass = 0; pass < APPEAR_PASSES; pass++) {
		if (ss_tasks_count_now(freeze->target) <= count_alive(tasks) ||
		    ss_freeze_now() >= freeze->round_ns)
			return;
		size_t first = tasks->items.count;
		if (ss_tasks_scan(tasks, freeze->target) == 0)
			return;
		for (size_t i = first; i < tasks->items.count; i++) {
			tasks->items.items[i].runs = true;
			seize(&tasks->items.items[i]);
		}
		interrupt_class(freeze, true);
		wait_class(freeze, true);
	}
}

/* Most uninterruptible sleep is short: a page fault, a lock of the kernel's. */
static void look_again_at_slow(struct ss_freeze *freeze)
{
	_cleanup_text_ struct ss_text text = {};
	struct ss_stat stat;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_SEIZED || !task->slow ||
		    !ss_target_read_stat(freeze->target, task->tid, &text, &stat))
			continue;
		task->state = stat.state;
		task->slow = stat.state == 'D';
		task->runs = stat.state == 'R';
	}
}

void ss_freeze_stop(struct ss_freeze *freeze)
{
	uint64_t timeout_ns = (uint64_t)freeze->options->timeout_ms * 1000000u;

	look_again_at_slow(freeze);
	freeze->begin_ns = ss_freeze_now();
	if (!freeze->deadline_ns)
		freeze->deadline_ns = freeze->begin_ns + timeout_ns;
	freeze->round_ns =
		SS_MIN(freeze->deadline_ns, freeze->begin_ns + (uint64_t)ROUND_NS);
	interrupt_class(freeze, false);
	/* Few sleepers stop in less time than another round of waiting takes. */
	if (freeze->tasks->items.count > TOGETHER)
		wait_class(freeze, false);
	interrupt_class(freeze, true);
	wait_class(freeze, false);
	wait_class(freeze, true);
	if (!freeze->options->filter)
		stop_newcomers(freeze);
}

/* Whether a thread is waited for, or has stopped without being waited for. */
static bool any_late(struct ss_freeze *freeze)
{
	size_t late = poll_class(freeze, true) + poll_class(freeze, false);

	for (size_t i = 0; i < freeze->tasks->items.count && !late; i++)
		late += freeze->tasks->items.items[i].phase == SS_TASK_STOPPED;
	return late > 0;
}

bool ss_freeze_stop_late(struct ss_freeze *freeze)
{
	uint64_t now = ss_freeze_now();

	if (now >= freeze->deadline_ns || !any_late(freeze))
		return false;
	freeze->rounds++;
	freeze->round_ns = SS_MIN(now + ROUND_NS, freeze->deadline_ns);
	wait_class(freeze, true);
	wait_class(freeze, false);
	return true;
}

static void release(const struct ss_freeze *freeze, struct ss_task *task)
{
	/* If that fails it was killed, and need not be released. What is left of it is
	   reaped, else an exec in its process would have to wait for us. */
	if (ptrace(PTRACE_DETACH, task->tid, 0, task->signal) != 0)
		(void)has_ended(freeze, task);
	task->phase = SS_TASK_RELEASED;
	task->stopped_ns = SS_MAX(task->stopped_ns, ss_freeze_now() - task->running_ns);
}

static void nap(void)
{
	struct timespec ts = { .tv_nsec = NAP_NS };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
}

void ss_freeze_release(struct ss_freeze *freeze, bool runs)
{
	unsigned disturbing = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_STOPPED || task->runs != runs)
			continue;
		release(freeze, task);
		disturbing += task->disturbs;
		if (task->disturbs && disturbing % RELEASES_AT_ONCE == 0)
			nap();
	}
	freeze->end_ns = ss_freeze_now();
}

void ss_freeze_finish(struct ss_freeze *freeze)
{
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_task *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_INTERRUPTED)
			continue;
		poll_task(freeze, task);
		if (task->phase != SS_TASK_STOPPED)
			continue;
		/* Too late to be copied: it was not there when the others were. */
		freeze->stopped -= task->stopped_ns == 0;
		release(freeze, task);
		task->phase = SS_TASK_INTERRUPTED;
	}
	freeze->held_ns += freeze->end_ns - freeze->begin_ns;
}
