#include "capture/freeze.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "process/registers.h"

enum {
	EACH_NS = 4 * 1000, /* wake up, run to the stop, sleep */
	CHECK_NS = 1000 * 1000,
	MANY_NS = 2 * 1000 * 1000,
};

void ss_stop_seize(const struct ss_freeze *freeze, struct ss_tracee *task)
{
	task->arch = freeze->target->arch;
	/* Its id may belong to a thread of another process by now. */
	if (tgkill(freeze->target->pid, task->tid, 0) != 0 && errno == ESRCH) {
		ss_task_enter(task, SS_TASK_GONE);
		return;
	}
	/* One that is attached may have been stopped by a signal since it was last seen to run. */
	if (!task->attached)
		task->running_ns = ss_now_ns();
	if (freeze->target->held || task->attached ||
	    ptrace(PTRACE_SEIZE, task->tid, 0, 0) == 0) {
		ss_task_enter(task, SS_TASK_SEIZED);
		task->attached = true;
		return;
	}
	ss_task_enter(task, errno == ESRCH ? SS_TASK_GONE : SS_TASK_REFUSED);
}

/* False: it has not stopped. */
static bool read_registers(struct ss_freeze *freeze, struct ss_tracee *task,
			   bool *ret_mixed)
{
	const struct ss_arch *arch;

	if (!ss_registers_read(task->tid, &task->kernel, &arch))
		return false;
	*ret_mixed = arch != task->arch;
	freeze->is_mixed |= *ret_mixed;
	ss_task_enter(task, SS_TASK_STOPPED);
	freeze->stopped += task->stopped_ns == 0;
	return true;
}

/* Prevents the stop from making a call return EINTR. */
static void stay_in_call(struct ss_tracee *task)
{
	const struct ss_arch_attach *attach = task->arch->attach;
	struct ss_syscall made;

	attach->syscall(&task->kernel, &made);
	task->runs = task->runs || made.number < 0;
	bool changed = attach->undo_eintr && attach->undo_eintr(&task->kernel);
	/* One of NONE_LATELY ran a moment ago: its wait gets hardly longer. */
	if (attach->avoid_restart_syscall &&
	    (task->filter == SS_FILTER_PRESENT || task->filter == SS_FILTER_NONE_LATELY))
		changed |= attach->avoid_restart_syscall(&task->kernel);
	/* On failure the thread was killed. */
	if (changed)
		(void)ss_registers_write(task->tid, &task->kernel);
}

/* Only its parent, which may be this program, should reap a process: do not reap
   leaders here. Other threads can be reaped only by a tracer. */
static bool may_reap(const struct ss_freeze *freeze, const struct ss_tracee *task)
{
	return task->tid != freeze->target->pid;
}

/* The same where a seccomp filter refuses waitid(). */
static bool is_dead(const struct ss_freeze *freeze, struct ss_tracee *task)
{
	char state = ss_target_peek_state(freeze->target, task->tid);

	if (state == '\0')
		return true;
	if (state != 'Z' && state != 'X')
		return false;
	/* A dead thread does not stop, so no stop is consumed. */
	if (may_reap(freeze, task))
		(void)waitpid(task->tid, NULL, WNOHANG | __WALL);
	return true;
}

/*
 * Whether a thread that was not stopped before has ended; if so, reaps it if allowed.
 * waitid() reports stops to a tracer even if it does not ask for them. A stop that
 * happened meanwhile must not be consumed: the kernel would regard its signal as
 * delivered to us (wait_task_stopped() clears it), and the signal would be lost if we
 * were killed before the release.
 */
static bool has_ended(const struct ss_freeze *freeze, struct ss_tracee *task)
{
	enum { LOOK = WEXITED | WNOHANG | __WALL };
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)task->tid, &info, LOOK | WNOWAIT) != 0) {
		if (errno != ECHILD)
			return is_dead(freeze, task);
		task->attached = false; /* it is no tracee any more */
		return true;
	}
	if (info.si_pid == 0 || info.si_code == CLD_TRAPPED)
		return false;
	if (may_reap(freeze, task)) /* it has ended */
		task->attached = waitid(P_PID, (id_t)task->tid, &info, LOOK) != 0;
	return true;
}

/*
 * Why a thread has stopped: a signal, and in the higher bits an event. Only the wait status tells,
 * since a process may send itself a signal with any si_code. The status is not consumed, see
 * has_ended().
 */
static int stop_status(const struct ss_tracee *task)
{
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)task->tid, &info,
		   WSTOPPED | WNOHANG | WNOWAIT | __WALL) == 0 &&
	    info.si_pid != 0)
		return info.si_status;
	/* A filter refuses waitid(), or another thread has consumed the status. */
	if (ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) != 0)
		return PTRACE_EVENT_STOP << 8 | SIGTRAP;
	return info.si_code >> 8 == PTRACE_EVENT_STOP ? info.si_code : info.si_signo;
}

/*
 * Sets the signal that a stop has intercepted, to be delivered at the release; 0: our own stop, or
 * one that SIGCONT makes of a seized thread, or a group-stop, which remains in effect. Whether it is
 * a group-stop: SIGTRAP is the signal of the others (do_jobctl_trap() in kernel/signal.c).
 */
static bool is_group_stop(struct ss_tracee *task)
{
	const int status = stop_status(task);
	const bool event = status >> 8 == PTRACE_EVENT_STOP;

	task->signal = event ? 0 : status & 0x7f;
	return event && (status & 0x7f) != SIGTRAP;
}

/*
 * PTRACE_SEIZE makes a group-stop a stop for this tracer, and waits until it is one
 * (ptrace_attach() in kernel/ptrace.c). If a thread in state T has none after that, SIGCONT has
 * ended it, and an interrupt could end another call of the thread. The stop itself changes nothing:
 * the signal has interrupted the call, and decides what it returns.
 */
void ss_stop_interrupt(struct ss_freeze *freeze, struct ss_tracee *task)
{
	bool is_mixed;

	if (task->state != 'T') {
		task->interrupted = ptrace(PTRACE_INTERRUPT, task->tid, 0, 0) == 0;
		ss_task_enter(task,
			      task->interrupted ? SS_TASK_INTERRUPTED : SS_TASK_GONE);
		return;
	}
	if (!read_registers(freeze, task, &is_mixed))
		return;
	const bool group_stop = is_group_stop(task);
	if (group_stop && !task->interrupted)
		return;
	if (!group_stop) /* Its registers tell what it does. */
		task->state = '?';
	if (!is_mixed)
		stay_in_call(task);
}

void ss_stop_poll(struct ss_freeze *freeze, struct ss_tracee *task)
{
	uint64_t now = ss_now_ns();
	bool is_mixed;

	if (!read_registers(freeze, task, &is_mixed)) {
		if (has_ended(freeze, task))
			ss_task_enter(task, SS_TASK_GONE);
		/* One that slept waits for a CPU, as after any other wake-up. */
		task->running_ns = now;
		return;
	}
	/* Not for a group-stop alone, see ss_stop_interrupt(). */
	if ((!is_group_stop(task) || task->interrupted) && !is_mixed)
		stay_in_call(task);
}

void ss_stop_check_late(struct ss_freeze *freeze)
{
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_INTERRUPTED || ss_task_is_slow(task))
			continue;
		char state = ss_target_peek_state(freeze->target, task->tid);
		if (state == '\0')
			continue;
		/* Any other state is that of a thread about to stop. */
		if (state == 'D' || state == 'Z' || state == 'X')
			task->state = state;
		/* A thread that calls execve() takes over the id of the leader, which
		   may have been interrupted in its place. A second interrupt is
		   harmless. */
		else
			(void)ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
	}
}

void ss_stop_wait(struct ss_freeze *freeze, size_t late, uint64_t until_ns)
{
	uint64_t now = ss_now_ns();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { .tv_nsec = (long)SS_MIN(left, (uint64_t)CHECK_NS) };
	sigset_t set;

	if (late > SS_STOP_FEW) {
		ss_sleep_ns(SS_MIN(late * EACH_NS, (size_t)MANY_NS));
		return;
	}
	(void)sigemptyset(&set); /* cannot fail with a valid signal */
	(void)sigaddset(&set, SIGCHLD);
	/* The caller checks what happened. */
	freeze->took_sigchld |= sigtimedwait(&set, NULL, &ts) == SIGCHLD;
}

void ss_stop_release(const struct ss_freeze *freeze, struct ss_tracee *task)
{
	/* On failure the thread was killed. Reap it, otherwise an exec in its process
	   would wait for us. */
	task->attached = !freeze->target->held &&
			 ptrace(PTRACE_DETACH, task->tid, 0, task->signal) != 0;
	if (task->attached)
		(void)has_ended(freeze, task);
	task->interrupted = false;
	ss_task_enter(task, SS_TASK_RELEASED);
	task->stopped_ns = SS_MAX(task->stopped_ns, ss_now_ns() - task->running_ns);
}

bool ss_stop_has_tracee(void)
{
	siginfo_t info = {};

	return waitid(P_ALL, 0, &info,
		      WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD) == 0 &&
	       info.si_pid != 0 && info.si_code == CLD_TRAPPED;
}
