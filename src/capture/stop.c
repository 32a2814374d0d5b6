#include "capture/stop.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	EACH_NS = 4 * 1000, /* wake up, run to the stop, sleep */
	LOOK_NS = 1000 * 1000,
	MANY_NS = 2 * 1000 * 1000,
	END_NS = 20 * 1000, /* what the end of a thread takes */
	END_NAPS = 50 * 1000,
};

uint64_t ss_freeze_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail: the clock exists */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void ss_stop_seize(struct ss_task *task)
{
	if (ptrace(PTRACE_SEIZE, task->tid, 0, 0) == 0) {
		task->phase = SS_TASK_SEIZED;
		task->attached = true;
		return;
	}
	task->seize_errno = errno;
	task->phase = task->seize_errno == ESRCH ? SS_TASK_GONE : SS_TASK_REFUSED;
}

void ss_stop_interrupt(struct ss_task *task)
{
	task->running_ns = ss_freeze_now();
	task->phase = ptrace(PTRACE_INTERRUPT, task->tid, 0, 0) == 0 ?
			      SS_TASK_INTERRUPTED :
			      SS_TASK_GONE;
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
static bool has_ended(const struct ss_freeze *freeze, struct ss_task *task)
{
	enum { LOOK = WEXITED | WNOHANG | __WALL };
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)task->tid, &info, LOOK | WNOWAIT) != 0)
		return true;
	if (info.si_pid == 0 || info.si_code == CLD_TRAPPED)
		return false;
	if (may_reap(freeze, task)) /* it has ended */
		task->attached = waitid(P_PID, (id_t)task->tid, &info, LOOK) != 0;
	return true;
}

void ss_stop_poll(struct ss_freeze *freeze, struct ss_task *task)
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

void ss_stop_look_at_late(struct ss_freeze *freeze)
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
		/* A thread that executes a program takes over the id of the leader, which
		   was told to stop in its place. To be told twice does no harm. */
		else
			(void)ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
	}
}

void ss_stop_wait(struct ss_freeze *freeze, size_t late, uint64_t until_ns)
{
	uint64_t now = ss_freeze_now();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { .tv_nsec = (long)SS_MIN(left, (uint64_t)LOOK_NS) };
	sigset_t set;

	if (late > SS_STOP_FEW) {
		ts.tv_nsec = (long)SS_MIN(late * EACH_NS, (size_t)MANY_NS);
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* or less */
		return;
	}
	(void)sigemptyset(&set); /* neither fails with a valid signal */
	(void)sigaddset(&set, SIGCHLD);
	/* Late or not: the caller looks. */
	freeze->took_sigchld |= sigtimedwait(&set, NULL, &ts) == SIGCHLD;
}

void ss_stop_release(const struct ss_freeze *freeze, struct ss_task *task)
{
	/* If that fails it was killed, and need not be released. What is left of it is
	   reaped, else an exec in its process would have to wait for us. */
	task->attached = ptrace(PTRACE_DETACH, task->tid, 0, task->signal) != 0;
	if (task->attached)
		(void)has_ended(freeze, task);
	task->phase = SS_TASK_RELEASED;
	task->stopped_ns = SS_MAX(task->stopped_ns, ss_freeze_now() - task->running_ns);
}

void ss_stop_join(pthread_t thread, const pid_t *tid)
{
	const struct timespec nap = { .tv_nsec = END_NS };

	(void)pthread_join(thread, NULL); /* it can be joined, and is not this one */
	/* No longer: another thread of this process may get the same id. */
	for (int i = 0; i < END_NAPS && tgkill(getpid(), *tid, 0) == 0; i++)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}
