#include "base/clock.h"
#include "capture/freeze.h"

enum {
	LIST_PASSES = 16,
	APPEAR_PASSES = 8,
	TOGETHER = 32, /* interrupt up to this many threads before waiting for any */
	/* for sleeping threads that wake up on the CPU of a running thread (measured) */
	STOPS_AT_ONCE = 16,
	/* between looks whether the process dumps core, which take 10 us each */
	SEIZES_AT_ONCE = 64,
	RELEASES_AT_ONCE = 32,
	NAP_NS = 20 * 1000,
	/* after this, late threads are examined */
	LATE_NS = 2 * 1000 * 1000,
	LATE_STEP_NS = 5 * 1000 * 1000,
	/*
	 * How long threads that have stopped wait for those that have not: with more
	 * runnable threads than CPUs, a thread may have to wait for a CPU before it can
	 * stop.
	 */
	ROUND_NS = 20 * 1000 * 1000,
	/*
	 * The same if running threads are among them: with the copies and the releases, none stands
	 * still for more than 5 ms. In the first part of it, further ones are attached. The rest is
	 * stopped after these were released.
	 */
	RUNNING_ATTACH_NS = 1500 * 1000,
	RUNNING_NS = 4 * 1000 * 1000,
	RUNNING_EACH_NS = 10 * 1000, /* of that, for the copy and the release of each */
	/* in addition, for each thread: on one CPU a stop takes 5 to 10 us (measured) */
	ROUND_EACH_NS = 20 * 1000,
	/*
	 * After the deadline: if the kernel released a thread with a seccomp filter that
	 * has not stopped yet, it would make it call restart_syscall(2).
	 */
	FILTERED_NS = 1000 * 1000 * 1000,
	/*
	 * Likewise, without a filter: the interrupt has woken up what slept, and a call such as
	 * epoll_wait(2) would return EINTR, which only a tracer can prevent. A thread may get no CPU
	 * for longer, and others wait for the end of this.
	 */
	UNSTOPPED_NS = 200 * 1000 * 1000,
};

/* Any interrupt ends the dump that a thread is writing (dump_interrupted() in
   fs/coredump.c). CoreDumping is the same in the status of every thread. */
static bool find_core_dump(struct ss_freeze *freeze)
{
	freeze->tasks->dumping_core |= ss_target_dumps_core(freeze->status_fd);
	return freeze->tasks->dumping_core;
}

static void close_status(struct ss_freeze *freeze)
{
	close_cleanup(&freeze->status_fd);
	freeze->status_fd = -1;
}

static bool open_status(struct ss_freeze *freeze, pid_t tid)
{
	close_status(freeze);
	freeze->status_fd = ss_target_open_task(freeze->target, tid, "status");
	return find_core_dump(freeze);
}

/* What was attached and not interrupted is released at the end of this thread. */
static void withdraw(struct ss_freeze *freeze)
{
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase == SS_TASK_CHOSEN || task->phase == SS_TASK_SEIZED)
			ss_task_enter(task, SS_TASK_SEEN);
	}
}

/* Whether a thread is chosen only right before the stop: it could begin a call that
   must not be interrupted. */
static bool is_put_off(const struct ss_tracee *task)
{
	return task->runs || task->filter == SS_FILTER_PRESENT;
}

/* Reads a thread again that is to be stopped although AUTO would not stop it when it
   sleeps: it has woken up too often. In some calls it must not be stopped even so. */
static void read_again(struct ss_freeze *freeze, struct ss_tracee *task,
		       struct ss_buffer *text)
{
	struct ss_capture_options options = *freeze->options;
	bool fragile = task->fragile;

	options.mode = SS_MODE_STOP;
	ss_task_enter(task, SS_TASK_SEEN);
	ss_task_read(task, freeze->target, &options, text);
	/* Then it may be in the same call, see capture/observe.h. */
	task->fragile |= fragile && task->runs;
}

void ss_freeze_choose_running(struct ss_freeze *freeze)
{
	_cleanup_buffer_ struct ss_buffer text = {};

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_SEEN || task->spared || task->moves_data ||
		    freeze->tasks->dumping_core)
			continue;
		/* It may have been watched until now. */
		if (task->filter == SS_FILTER_UNKNOWN)
			ss_task_read_filter(task, freeze->target, &text);
		if (task->filter == SS_FILTER_PRESENT)
			read_again(freeze, task, &text);
		if (task->phase == SS_TASK_SEEN && !ss_task_is_untouchable(task))
			ss_task_enter(task, SS_TASK_CHOSEN);
	}
}

/* Whether the list is complete: it is that of the previous capture of a series, and none of these
   threads has run since, so none can have begun another one. */
static bool are_all(const struct ss_freeze *freeze)
{
	const struct ss_task_list *tasks = freeze->tasks;
	const struct ss_capture *previous = freeze->options->previous;

	if (!previous || previous->threads.count != tasks->items.count || tasks->unseen)
		return false;
	for (size_t i = 0; i < tasks->items.count; i++)
		if (!tasks->items.items[i].before || !tasks->items.items[i].not_run)
			return false;
	return true;
}

void ss_freeze_choose(struct ss_freeze *freeze)
{
	struct ss_task_list *tasks = freeze->tasks;
	_cleanup_buffer_ struct ss_buffer text = {};
	size_t done = 0;
	pid_t live = ss_target_find_live(freeze->target);
	bool dumping = open_status(freeze, live);

	for (int pass = 0; pass < LIST_PASSES; pass++) {
		size_t count = ss_tasks_count_now(freeze->target);
		if (!ss_tasks_reserve(tasks,
				      SS_MAX(tasks->items.count, count) + count + 64))
			return;
		if (ss_tasks_scan(tasks, freeze->target) == 0 && tasks->unseen == 0)
			return;
		for (; done < tasks->items.count; done++) {
			struct ss_tracee *task = &tasks->items.items[done];
			ss_task_read(task, freeze->target, freeze->options, &text);
			if (task->phase != SS_TASK_SEEN || dumping)
				continue;
			/* Not known yet of a thread that woke up while it was read. */
			ss_task_read_filter(task, freeze->target, &text);
			if (!is_put_off(task))
				ss_task_enter(task, SS_TASK_CHOSEN);
		}
		if (are_all(freeze))
			return;
	}
}

void ss_freeze_choose_again(struct ss_freeze *freeze, bool all)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	bool dumping = freeze->tasks->dumping_core;

	for (size_t i = 0; i < freeze->tasks->items.count && !dumping; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if ((!all || task->phase != SS_TASK_RELEASED) &&
		    task->phase != SS_TASK_SEEN)
			continue;
		task->spared = task->put_off || task->limited;
		/* It was read just now, or is not stopped anyway. */
		if (task->spared)
			continue;
		if (task->phase == SS_TASK_SEEN && task->runs && !task->fragile &&
		    task->state != 'T') /* which it has left since */
			continue;
		if (!task->runs || task->filter == SS_FILTER_UNKNOWN)
			ss_task_read_filter(task, freeze->target, &text);
		read_again(freeze, task, &text);
		if (task->phase == SS_TASK_SEEN && !task->moves_data && !is_put_off(task))
			ss_task_enter(task, SS_TASK_CHOSEN);
	}
	freeze->rounds = all ? 0 : freeze->rounds + 1;
}

/* Uninterruptible sleep is usually short: a page fault, a kernel lock. */
static void recheck_slow(struct ss_freeze *freeze)
{
	_cleanup_buffer_ struct ss_buffer text = {};
	struct ss_stat stat;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_CHOSEN || !ss_task_is_slow(task) ||
		    !ss_target_read_stat(freeze->target, task->tid, &text, &stat))
			continue;
		task->state = ss_task_state_of(task, freeze->target, &stat);
		task->runs = stat.state == 'R';
	}
}

void ss_freeze_prepare(struct ss_freeze *freeze)
{
	pid_t tid = 0;

	recheck_slow(freeze);
	for (size_t i = 0; i < freeze->tasks->items.count && !tid; i++) {
		const struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase == SS_TASK_CHOSEN || task->phase == SS_TASK_SEEN)
			tid = task->tid;
	}
	if (tid && open_status(freeze, tid))
		withdraw(freeze);
}

/* Polls the threads that sleep or, with all, all. Returns how many are still expected to stop. */
static size_t poll_threads(struct ss_freeze *freeze, bool all)
{
	size_t late = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		/* Not attached: released already, in an earlier turn, because it was late.
		   Attached, and went on: a signal may stop it. */
		if ((task->phase != SS_TASK_INTERRUPTED &&
		     (task->phase != SS_TASK_SEIZED || task->state != 'T')) ||
		    (task->runs && !all) || !task->attached)
			continue;
		ss_stop_poll(freeze, task);
		late += task->phase == SS_TASK_INTERRUPTED && !ss_task_is_slow(task);
	}
	return late;
}

uint64_t ss_freeze_find_limit(const struct ss_freeze *freeze)
{
	uint64_t first_ns = UINT64_MAX;
	uint64_t rest_ns = RUNNING_NS;

	for (size_t i = 0; i < freeze->tasks->items.count && !freeze->target->held; i++) {
		const struct ss_tracee *task = &freeze->tasks->items.items[i];
		/* Also one that was asleep when it was read. */
		if (task->phase != SS_TASK_STOPPED || !task->runs)
			continue;
		first_ns = SS_MIN(first_ns, task->running_ns);
		rest_ns -= SS_MIN(rest_ns, (uint64_t)RUNNING_EACH_NS);
	}
	return first_ns == UINT64_MAX ? freeze->round_ns :
					SS_MIN(freeze->round_ns, first_ns + rest_ns);
}

/* Waits until all threads that can stop have stopped: those that sleep or, with all, all. */
static void wait_threads(struct ss_freeze *freeze, bool all)
{
	uint64_t look_ns = ss_now_ns() + LATE_NS;
	size_t late;

	while ((late = poll_threads(freeze, all)) > 0) {
		uint64_t now = ss_now_ns();
		uint64_t limit_ns = ss_freeze_find_limit(freeze);
		if (now >= limit_ns)
			return;
		/* Only if few are late: examining many takes longer than waiting for
		   them. */
		if (late <= SS_STOP_FEW && now >= look_ns) {
			ss_stop_check_late(freeze);
			look_ns = ss_now_ns() + LATE_STEP_NS;
		}
		ss_stop_wait(freeze, late, limit_ns);
	}
}

/* Attaches at most max chosen threads of a class. Returns the index behind the last.
   *any: whether one was attached. */
static size_t seize_batch(struct ss_freeze *freeze, size_t from, bool runs, size_t max,
			  bool *any)
{
	size_t i = from;

	*any = false;
	for (size_t count = 0; i < freeze->tasks->items.count && count < max; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_CHOSEN || task->runs != runs)
			continue;
		ss_stop_seize(freeze, task);
		*any |= task->phase == SS_TASK_SEIZED;
		count++;
	}
	return i;
}

/*
 * Attaches at most max chosen threads of a class, from index from on. Returns the index
 * behind the last. An attached thread does not begin a core dump: the signal stops it first.
 * So none of these threads is writing one if the process is not dumping core after they were
 * attached. If it is, they are not to be interrupted.
 */
static size_t attach_batch(struct ss_freeze *freeze, size_t from, bool runs, size_t max)
{
	bool any;
	size_t end = seize_batch(freeze, from, runs, max, &any);

	if (!any || !find_core_dump(freeze))
		return end;
	withdraw(freeze);
	return freeze->tasks->items.count;
}

/* Interrupts at most max attached threads before index end, from *index on. Returns how many
   of them disturb running ones. */
static unsigned interrupt_batch(struct ss_freeze *freeze, size_t *index, size_t end,
				size_t max)
{
	unsigned disturbing = 0;

	for (size_t count = 0; *index < end && count < max; (*index)++) {
		struct ss_tracee *task = &freeze->tasks->items.items[*index];
		if (task->phase != SS_TASK_SEIZED)
			continue;
		ss_stop_interrupt(freeze, task);
		disturbing += task->disturbs;
		count++;
	}
	return disturbing;
}

/* Sleeping threads that wake up on the CPU of a running thread delay it. Stops only some
   at a time, so that it runs in between. until_ns: those that are left then stay chosen. */
static void stop_class(struct ss_freeze *freeze, bool runs, uint64_t until_ns)
{
	unsigned disturbing = 0;
	size_t attached = 0;
	size_t done = 0;

	while (attached < freeze->tasks->items.count && ss_now_ns() < until_ns) {
		attached = attach_batch(freeze, attached, runs, SEIZES_AT_ONCE);
		while (done < attached) {
			unsigned more =
				interrupt_batch(freeze, &done, attached, STOPS_AT_ONCE);
			disturbing += runs ? 0 : more; /* only sleeping ones disturb */
			if (disturbing < STOPS_AT_ONCE)
				continue;
			wait_threads(freeze, false);
			disturbing = 0;
		}
	}
}

static size_t count_alive(const struct ss_task_list *tasks)
{
	size_t alive = 0;

	for (size_t i = 0; i < tasks->items.count; i++)
		alive += tasks->items.items[i].phase != SS_TASK_GONE;
	return alive;
}

static enum ss_task_filter find_filter(const struct ss_task_list *tasks)
{
	for (size_t i = 0; i < tasks->items.count; i++)
		if (tasks->items.items[i].filter == SS_FILTER_PRESENT)
			return SS_FILTER_PRESENT;
	return SS_FILTER_UNKNOWN;
}

static bool any_chosen(const struct ss_freeze *freeze)
{
	bool any = false;

	for (size_t i = 0; i < freeze->tasks->items.count && !any; i++)
		any = freeze->tasks->items.items[i].phase == SS_TASK_CHOSEN;
	return any;
}

/* Threads that were created between the last listing and the stop. */
static void stop_new_threads(struct ss_freeze *freeze)
{
	struct ss_task_list *tasks = freeze->tasks;
	enum ss_task_filter filter = find_filter(tasks);

	for (int pass = 0; pass < APPEAR_PASSES; pass++) {
		if (ss_tasks_count_now(freeze->target) <= count_alive(tasks) ||
		    ss_now_ns() >= ss_freeze_find_limit(freeze))
			return;
		size_t first = tasks->items.count;
		if (ss_tasks_scan(tasks, freeze->target) == 0)
			return;
		for (size_t i = first; i < tasks->items.count; i++) {
			tasks->items.items[i].runs = true;
			/* Filters are inherited; files cannot be opened now. */
			tasks->items.items[i].filter = filter;
			ss_task_enter(&tasks->items.items[i], SS_TASK_CHOSEN);
		}
		stop_class(freeze, true, ss_freeze_find_limit(freeze));
		wait_threads(freeze, true);
	}
}

/* Stops the running threads that are chosen, as many as there is time for. */
static void stop_running(struct ss_freeze *freeze)
{
	stop_class(freeze, true,
		   freeze->target->held ? UINT64_MAX : ss_now_ns() + RUNNING_ATTACH_NS);
}

static uint64_t find_round_ns(const struct ss_freeze *freeze)
{
	size_t chosen = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++)
		chosen += freeze->tasks->items.items[i].phase == SS_TASK_CHOSEN;
	return ROUND_NS + (uint64_t)chosen * ROUND_EACH_NS;
}

void ss_freeze_stop(struct ss_freeze *freeze)
{
	uint64_t timeout_ns = (uint64_t)freeze->options->timeout_ms * 1000000u;

	freeze->begin_ns = ss_now_ns();
	if (!freeze->deadline_ns)
		freeze->deadline_ns = freeze->begin_ns + timeout_ns;
	/* Of a short limit, half remains for the copy. */
	freeze->round_ns =
		SS_MIN(freeze->deadline_ns,
		       freeze->begin_ns + SS_MIN(timeout_ns / 2, find_round_ns(freeze)));
	if (freeze->target->held) /* nothing is released */
		freeze->round_ns = freeze->begin_ns + timeout_ns / 2;
	stop_class(freeze, false, freeze->round_ns);
	/* A few sleeping threads stop faster than another wait takes. */
	if (freeze->tasks->items.count > TOGETHER)
		wait_threads(freeze, false);
	stop_running(freeze);
	wait_threads(freeze, true);
	if (!freeze->options->filter)
		stop_new_threads(freeze);
}

/* Whether a thread has stopped late or may still stop, or there was no time for it. */
static bool any_late(struct ss_freeze *freeze)
{
	size_t late = poll_threads(freeze, true);

	for (size_t i = 0; i < freeze->tasks->items.count && !late; i++)
		late += freeze->tasks->items.items[i].phase == SS_TASK_STOPPED;
	return late > 0 || any_chosen(freeze);
}

bool ss_freeze_stop_late(struct ss_freeze *freeze)
{
	uint64_t now = ss_now_ns();

	if (now >= freeze->deadline_ns || !any_late(freeze))
		return false;
	freeze->rounds++;
	freeze->round_ns = SS_MIN(now + ROUND_NS, freeze->deadline_ns);
	stop_class(freeze, false, ss_freeze_find_limit(freeze));
	stop_running(freeze);
	wait_threads(freeze, true);
	return true;
}

void ss_freeze_release(struct ss_freeze *freeze, bool runs)
{
	unsigned disturbing = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase != SS_TASK_STOPPED || task->runs != runs)
			continue;
		ss_stop_release(freeze, task);
		disturbing += task->disturbs;
		if (task->disturbs && disturbing % RELEASES_AT_ONCE == 0)
			ss_sleep_ns(NAP_NS);
	}
	freeze->end_ns = ss_now_ns();
}

/* For captures that are not atomic, where threads do not stand still together. */
static void release_alone(struct ss_freeze *freeze, struct ss_tracee *task)
{
	ss_stop_release(freeze, task);
	freeze->duration_ns += task->stopped_ns;
	freeze->max_thread_ns = SS_MAX(freeze->max_thread_ns, task->stopped_ns);
}

static void copy_and_release(struct ss_freeze *freeze, ss_freeze_copier *copy, void *data)
{
	bool any = false;

	for (size_t i = 0; i < freeze->tasks->items.count && !any; i++)
		any = freeze->tasks->items.items[i].phase == SS_TASK_STOPPED;
	if (!any)
		return;
	copy(data);
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (task->phase == SS_TASK_STOPPED)
			release_alone(freeze, task);
	}
}

void ss_freeze_each(struct ss_freeze *freeze, ss_freeze_copier *copy, void *data)
{
	uint64_t look_ns = ss_now_ns() + LATE_NS;
	size_t late;

	freeze->deadline_ns =
		ss_now_ns() + (uint64_t)freeze->options->timeout_ms * 1000000u;
	for (int runs = 0; runs <= 1; runs++) {
		size_t done = 0;
		while (done < freeze->tasks->items.count) {
			size_t end = attach_batch(freeze, done, runs, STOPS_AT_ONCE);
			(void)interrupt_batch(freeze, &done, end, STOPS_AT_ONCE);
			done = end;
			(void)poll_threads(freeze, true);
			copy_and_release(freeze, copy, data);
		}
	}
	for (;;) {
		late = poll_threads(freeze, true);
		copy_and_release(freeze, copy, data);
		uint64_t now = ss_now_ns();
		if (late == 0 || now >= freeze->deadline_ns)
			return;
		if (late <= SS_STOP_FEW && now >= look_ns) {
			ss_stop_check_late(freeze);
			look_ns = now + LATE_STEP_NS;
		}
		ss_stop_wait(freeze, late, freeze->deadline_ns);
	}
}

/* Releases a thread if it has stopped by now; phase: what it is then. */
static void release_if_stopped(struct ss_freeze *freeze, struct ss_tracee *task,
			       enum ss_task_phase phase)
{
	if (!task->attached)
		return;
	ss_stop_poll(freeze, task);
	if (task->phase != SS_TASK_STOPPED)
		return;
	/* Too late to copy: the others have been released already. */
	freeze->late++;
	if (freeze->begin_ns) {
		ss_stop_release(freeze, task);
		freeze->end_ns = ss_now_ns();
	} else {
		release_alone(freeze, task);
	}
	ss_task_enter(task, phase);
}

/* Whether nobody waits for its stop, which may still come if it is attached, whatever else is known
   of it. */
static bool is_left_alone(const struct ss_tracee *task)
{
	switch (task->phase) {
	case SS_TASK_CHOSEN:
	case SS_TASK_SEIZED:
	case SS_TASK_INTERRUPTED:
	case SS_TASK_STOPPED:
	case SS_TASK_RELEASED:
	case SS_TASK_ZOMBIE:
		return false;
	default:
		return true;
	}
}

void ss_freeze_release_between(struct ss_freeze *freeze)
{
	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (is_left_alone(task))
			release_if_stopped(freeze, task, task->phase);
		else if (task->phase == SS_TASK_INTERRUPTED)
			release_if_stopped(freeze, task, SS_TASK_SEEN);
	}
}

/* Releases what has stopped by now, also by a signal, without an interrupt. How many have not;
   filtered: with a seccomp filter. */
static size_t release_late(struct ss_freeze *freeze, bool filtered)
{
	size_t late = 0;

	for (size_t i = 0; i < freeze->tasks->items.count; i++) {
		struct ss_tracee *task = &freeze->tasks->items.items[i];
		if (is_left_alone(task) || task->phase == SS_TASK_INTERRUPTED)
			release_if_stopped(freeze, task, task->phase);
		late += task->phase == SS_TASK_INTERRUPTED && task->attached &&
			!ss_task_is_slow(task) &&
			(!filtered || task->filter == SS_FILTER_PRESENT);
	}
	return late;
}

bool ss_freeze_release_late(struct ss_freeze *freeze)
{
	bool any = false;

	(void)release_late(freeze, false); /* also counts: there is no limit here */
	for (size_t i = 0; i < freeze->tasks->items.count && !any; i++)
		any = freeze->tasks->items.items[i].attached;
	return any;
}

void ss_freeze_finish(struct ss_freeze *freeze)
{
	const uint64_t begin_ns = ss_now_ns();
	uint64_t now = begin_ns;
	uint64_t look_ns = begin_ns;
	size_t late;

	withdraw(freeze); /* for want of time */
	while (now < begin_ns + FILTERED_NS &&
	       (late = release_late(freeze, now >= begin_ns + UNSTOPPED_NS)) > 0) {
		if (late <= SS_STOP_FEW && now >= look_ns) {
			ss_stop_check_late(freeze);
			look_ns = now + LATE_STEP_NS;
		}
		ss_stop_wait(freeze, late, begin_ns + FILTERED_NS);
		now = ss_now_ns();
	}
	if (freeze->end_ns > freeze->begin_ns)
		freeze->duration_ns += freeze->end_ns - freeze->begin_ns;
	close_status(freeze);
}
