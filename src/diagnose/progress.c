#include "diagnose/progress.h"

#include <signal.h>
#include <string.h>

#include "base/error.h"
#include "base/search.h"
#include "diagnose/diagnose.h"
#include "data/snapshot.h"

/*
 * Leader and followers: the threads of a pool take turns in waiting for the next
 * connection or job. The leader waits for it and holds a lock; the followers wait for that
 * lock. All of them are idle.
 */

enum {
	/* frames between the pool's function and the lock: 5 in Rust 1.63 */
	WRAPPERS_MAX = 6,
	LEADERS_MAX = 8,      /* of followers of followers */
	FRAMES_MAX = 64,      /* that are compared */
	FUNCTION_SIZE = 1024, /* distance of call sites in one function without a name */
};

/* Whether the function probably does nothing but wait for a lock. If the leader waits for
   connections, a function without a name is given the benefit of the doubt. */
static bool is_wrapper(const struct ss_frame *frame, bool connections)
{
	static const char *const words[] = { "lock",  "mutex", "acquire",
					     "enter", "wait",  "sem" };

	if (!frame->module)
		return false; /* code of an interpreter may be anything */
	for (size_t i = 0; frame->symbol && i < SS_ARRAY_SIZE(words); i++) {
		if (strcasestr(frame->symbol, words[i]))
			return true;
	}
	return !frame->symbol && connections;
}

/* Whether two frames without names are probably call sites in the same function. */
static bool is_near(const struct ss_frame *a, const struct ss_frame *b)
{
	return !a->symbol && !b->symbol && a->module && b->module &&
	       a->pc - b->pc + FUNCTION_SIZE < UINT64_C(2) * FUNCTION_SIZE;
}

static bool any_listens(const struct ss_watched_fd *fds, size_t count)
{
	return ss_any(count, i, fds[i].what && fds[i].what->listening);
}

/* Datagrams for nobody in particular are requests; data of a connection is an answer that
   may never come. */
static bool receives_requests(const struct ss_descriptor *descriptor)
{
	return descriptor && descriptor->protocol &&
	       strncmp(descriptor->protocol, "UDP", 3) == 0 &&
	       descriptor->remote.port == 0;
}

bool ss_wait_is_for_connections(const struct ss_wait *wait)
{
	switch (wait ? wait->kind : SS_WAIT_OTHER) {
	case SS_WAIT_ACCEPT:
		return true;
	case SS_WAIT_RECEIVE:
		return receives_requests(wait->descriptor);
	case SS_WAIT_POLL:
	case SS_WAIT_SELECT:
		return any_listens(wait->fds, wait->fd_count);
	case SS_WAIT_EPOLL:
		return wait->descriptor && any_listens(wait->descriptor->watches,
						       wait->descriptor->watch_count);
	default:
		return false;
	}
}

static bool waits_for_work(const struct ss_wait *wait)
{
	switch (wait ? wait->kind : SS_WAIT_OTHER) {
	case SS_WAIT_CONDVAR:
	case SS_WAIT_SEMAPHORE:
	case SS_WAIT_FUTEX:
	case SS_WAIT_SIGNAL:
	case SS_WAIT_WORK:
		return true;
	case SS_WAIT_IPC:
		return wait->ipc == SS_IPC_RECEIVE;
	case SS_WAIT_READ:
		return wait->descriptor && wait->descriptor->kind == SS_FD_EVENTFD;
	default:
		return ss_wait_is_for_connections(wait);
	}
}

/* Instances of a generic function may have one name: Rust's thread functions, into which the
   compiler has inlined different programs. */
static bool is_other_instance(const struct ss_frame *a, const struct ss_frame *b)
{
	return a->symbol && b->symbol && !a->inlined && !b->inlined && a->module &&
	       a->module == b->module &&
	       a->offset - a->symbol_offset != b->offset - b->symbol_offset;
}

/* Whether a thread is in the function of that frame, or probably is. */
static bool is_in(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		  const struct ss_frame *function, bool connections)
{
	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		if ((ss_frame_is_same_function(frame, function) &&
		     !is_other_instance(frame, function)) ||
		    (connections && is_near(frame, function)))
			return true;
	}
	return false;
}

/* Whether the follower requests its lock in a function that the leader is in. */
static bool same_function(const struct ss_snapshot *a, const struct ss_task *follower,
			  const struct ss_snapshot *b, const struct ss_task *leader)
{
	bool connections = ss_wait_is_for_connections(leader->wait);
	const struct ss_module *waits = NULL;
	size_t wrappers = 0;

	for (size_t i = 0; i < follower->frame_count && wrappers <= WRAPPERS_MAX; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(a, follower, i);
		waits = i == 0 ? frame->module : waits;
		if (frame->module == waits)
			continue;
		bool wrapper = is_wrapper(frame, connections);
		if (frame->module && !(wrapper && frame->symbol) &&
		    is_in(b, leader, frame, connections))
			return true;
		if (!wrapper)
			return false;
		wrappers += !frame->inlined; /* known only with debug information */
	}
	return false;
}

static bool is_lock(const struct ss_wait *wait)
{
	return wait && wait->lock != SS_LOCK_JAVA_MONITOR &&
	       (wait->kind == SS_WAIT_MUTEX || wait->kind == SS_WAIT_RWLOCK ||
		wait->kind == SS_WAIT_FILE_LOCK);
}

/* The known owner of the lock. */
static struct ss_thread_ref owner_of(const struct ss_snapshot *snapshot,
				     const struct ss_wait *wait)
{
	struct ss_thread_ref owner = { .snapshot = snapshot };

	if (wait->owner_pid && wait->chain_length)
		return wait->chain[0];
	if (wait->owner_tid && !wait->owner_pid)
		owner.thread = ss_snapshot_find_thread(snapshot, wait->owner_tid);
	return owner;
}

/* Some thread that may hold a lock that does not tell its owner. */
static bool may_exist(const struct ss_snapshot *snapshot, const struct ss_task *follower)
{
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		if (thread != follower && waits_for_work(thread->wait) &&
		    same_function(snapshot, follower, snapshot, thread))
			return true;
	}
	return false;
}

bool ss_thread_has_leader(const struct ss_snapshot *snapshot,
			  const struct ss_task *follower)
{
	struct ss_thread_ref at = { snapshot, follower };

	for (int i = 0; i < LEADERS_MAX && is_lock(at.thread->wait); i++) {
		const struct ss_wait *wait = at.thread->wait;
		if (wait->owner_unknown == SS_OWNER_NOT_RECORDED)
			return may_exist(at.snapshot, at.thread);
		struct ss_thread_ref owner = owner_of(at.snapshot, wait);
		if (!owner.thread ||
		    !same_function(at.snapshot, at.thread, owner.snapshot, owner.thread))
			return false;
		if (waits_for_work(owner.thread->wait))
			return true;
		at = owner;
	}
	return false;
}

enum {
	BUSY_PERCENT = 70, /* share of the time on a CPU or runnable */
	STILL_PERCENT = 5, /* share of the time on a CPU; our stops take far less */
	STOP_RUNS = 2,	   /* maximum that one of our stops adds to the run count, without
			      preemption */
	STACKS_MAX = 256,  /* for which a leader is searched */
	WAITS_MIN = 4,	   /* samples that tell how long the limit is */
	CYCLE_WAITS = 6,   /* and, in a cycle, different waits that it ended */
	LONG_LIMIT = 10,   /* times of the observation */
	SLACK = 2,	   /* switches for other reasons, at most */
	CHAIN_MAX = 64,	   /* limit of waits in a chain */
	/* What is left of a wait, added to the time of its sample, differs by less in two samples. */
	LIMITS_APART_NS = 25 * 1000 * 1000,
	/* Who is woken more often than that gets the lock at times; SQLite looks every 100 ms. */
	POLL_NS = 50 * 1000 * 1000,
};

#define SECOND_NS UINT64_C(1000000000)

static const char *intern(struct ss_progress *progress, const char *text)
{
	return text ? ss_intern_string(progress->strings, text) : NULL;
}

/* Whether a stack that could not be unwound to its end has the innermost functions of
   another one. */
static bool is_part(const struct ss_snapshot *a, const struct ss_task *part,
		    const struct ss_snapshot *b, const struct ss_task *whole)
{
	return ss_all(part->frame_count, i,
		      ss_frame_is_same_function(ss_snapshot_frame(a, part, i),
						ss_snapshot_frame(b, whole, i)));
}

/* The innermost of the outermost frames of a thread; where a runtime executes it, the
   innermost one in its language, if there is any. NULL: not known. */
static const char *innermost(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread, size_t common)
{
	for (size_t i = common; i > 0; i--) {
		const struct ss_frame *frame = ss_outer_frame(snapshot, thread, i - 1);
		if (frame->kind != SS_FRAME_NATIVE && frame->symbol)
			return frame->symbol;
	}
	return common > 0 ? ss_outer_frame(snapshot, thread, common - 1)->symbol : NULL;
}

/* How many of the outermost frames have to be equal if a thread waits in one place: of one that waits for
   a Java monitor, those up to its innermost method. Below that, the virtual machine looks at times
   whether it can enter. */
static size_t count_needed(const struct ss_snapshot *snapshot,
			   const struct ss_task *thread)
{
	size_t count = thread->frame_count;

	if (!thread->wait || thread->wait->lock != SS_LOCK_JAVA_MONITOR)
		return count;
	while (count > 0 &&
	       ss_outer_frame(snapshot, thread, count - 1)->kind != SS_FRAME_JAVA)
		count--;
	return count > 0 ? count : thread->frame_count;
}

/* Compares the stacks of one thread in all snapshots: how often the thread was stopped,
   whether its stack was always the same, and which function it never left. */
static void compare_samples(struct ss_progress *progress, const struct ss_task *thread,
			    struct ss_thread_progress *ret, unsigned *stops, bool *same)
{
	const size_t needed = count_needed(progress->last, thread);
	size_t common = thread->frame_count;

	*same = true;
	for (size_t i = 0; i < progress->snapshot_count; i++) {
		const struct ss_snapshot *snapshot = progress->snapshots[i];
		const struct ss_task *then =
			ss_snapshot_find_thread(snapshot, thread->tid);
		if (!then)
			continue;
		/* One that was taken for what is left of time limits. */
		if (ss_snapshot_process(snapshot)->mode == SS_MODE_NO_STOP &&
		    ss_snapshot_process(progress->last)->mode != SS_MODE_NO_STOP &&
		    then->state != 'R')
			continue;
		*stops += then->stopped_ns > 0;
		if (then->frame_count == 0)
			continue;
		/* Native frames only, since calls of a runtime were not copied: they are not
		   comparable. */
		if (then->native_reason && !thread->native_reason) {
			*same = false;
			continue;
		}
		ret->samples++;
		ret->seen_in = snapshot;
		ret->seen = then;
		if (!ss_end_is_outermost(then->end) &&
		    then->frame_count < thread->frame_count) {
			*same &= is_part(snapshot, then, progress->last, thread) &&
				 then->state != 'R';
			continue;
		}
		size_t equal =
			ss_outer_frames_common(snapshot, then, progress->last, thread);
		common = SS_MIN(common, equal);
		*same &= needed < thread->frame_count ?
				 equal >= needed :
				 equal == thread->frame_count &&
					 equal == then->frame_count && then->state != 'R';
	}
	ret->within = intern(progress, innermost(progress->last, thread, common));
}

static enum ss_movement classify(const struct ss_progress *progress,
				 const struct ss_thread_progress *thread, unsigned stops,
				 bool same)
{
	uint64_t active_ns = thread->run_ns + thread->ready_ns;
	/* At each stop, another thread may have preempted it. */
	uint64_t forced = SS_MIN(thread->forced, (uint64_t)stops);

	/* A thread that has a CPU to itself is scheduled only once. */
	if (thread->runs <= (uint64_t)stops * STOP_RUNS + forced &&
	    thread->run_ns < progress->elapsed_ns / 100 * STILL_PERCENT)
		return SS_MOVEMENT_NONE;
	if (active_ns >= progress->elapsed_ns / 100 * BUSY_PERCENT)
		return SS_MOVEMENT_BUSY;
	return same ? SS_MOVEMENT_WOKEN : SS_MOVEMENT_MOVES;
}

static void compare_counters(struct ss_progress *progress, const struct ss_task *thread,
			     struct ss_thread_progress *ret)
{
	const struct ss_thread_activity *before =
		ss_activity_find(progress->before, thread->tid);
	const struct ss_thread_activity *after =
		ss_activity_find(progress->after, thread->tid);
	unsigned stops = 0;
	bool same = true;

	compare_samples(progress, thread, ret, &stops, &same);
	ret->stops = stops;
	if (!before || !after || !before->counted) {
		/* It started or ended meanwhile, or the kernel has no schedstat. */
		ret->movement = before && after ? SS_MOVEMENT_UNKNOWN : SS_MOVEMENT_MOVES;
		return;
	}
	ret->run_ns = after->run_ns - before->run_ns;
	ret->ready_ns = after->ready_ns - before->ready_ns;
	ret->runs = after->runs - before->runs;
	ret->voluntary = after->voluntary - before->voluntary;
	ret->forced = after->forced - before->forced;
	ret->movement = classify(progress, ret, stops, same);
}

static size_t index_of(const struct ss_progress *progress, const struct ss_task *thread)
{
	return (size_t)(thread - progress->last->tasks[SS_TASK_THREAD].items);
}

/* The thread that a thread waits for, or NULL. */
static const struct ss_task *find_next(const struct ss_progress *progress,
				       const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;

	return wait && wait->owner_tid && !wait->owner_pid ?
		       ss_snapshot_find_thread(progress->last, wait->owner_tid) :
		       NULL;
}

/* The thread at the end of the chain of waits, which may be the thread itself. In a cycle: any member. */
static const struct ss_task *find_root(const struct ss_progress *progress,
				       const struct ss_task *thread)
{
	const struct ss_task *next;

	for (int i = 0; i < CHAIN_MAX && (next = find_next(progress, thread)); i++)
		thread = next;
	return thread;
}

/* The thread woke up about once a second, as a time limit does, and each time resumed
   waiting in the same place: Java monitors wait like this. */
static bool only_polls(const struct ss_progress *progress, const struct ss_task *thread,
		       const struct ss_thread_progress *own)
{
	return own->movement == SS_MOVEMENT_WOKEN &&
	       (thread->wait->timed || thread->wait->lock == SS_LOCK_JAVA_MONITOR) &&
	       own->runs <= 1 + progress->elapsed_ns / SECOND_NS;
}

/* How long a wait may last, at least. 0: not known. */
static uint64_t limit_of(const struct ss_wait *wait)
{
	return (uint64_t)SS_MAX(SS_MAX(wait->timeout_ns, wait->left_ns), (int64_t)0);
}

/* Whether a thread waited in the same way in an earlier sample, as far as that tells. */
static bool is_same_wait(const struct ss_wait *then, const struct ss_wait *now)
{
	return then && then->timed && then->syscall && now->syscall &&
	       strcmp(then->syscall, now->syscall) == 0 &&
	       (!then->owner_tid || then->owner_tid == now->owner_tid) &&
	       (then->lock == SS_LOCK_NONE ||
		(then->lock == now->lock && then->address == now->address));
}

/*
 * Whether a time limit has ended the wait again and again, and each time the thread waited for the same
 * lock of the same owner again, as if there was no limit. One that gives up and unlocks what it has
 * itself, or that gets the lock at times, blocks more often than the limit passes; that shows only if it
 * passes several times, which a cycle needs. Behind one that stands still, it need not pass.
 */
static bool retries(const struct ss_progress *progress, const struct ss_task *thread,
		    uint64_t passes_min)
{
	const struct ss_thread_progress *own =
		&progress->threads[index_of(progress, thread)];
	const struct ss_wait *wait = thread->wait;
	unsigned samples = 0;
	unsigned limits = 0; /* different moments at which they end */
	uint64_t last = 0;
	uint64_t limit = 0;

	if (own->movement != SS_MOVEMENT_WOKEN || !wait || !wait->timed ||
	    !wait->owner_tid || wait->owner_pid)
		return false;
	for (size_t i = 0; i < progress->snapshot_count; i++) {
		const struct ss_task *then =
			ss_snapshot_find_thread(progress->snapshots[i], thread->tid);
		if (!then || then->state == 'R')
			continue;
		if (!is_same_wait(then->wait, wait))
			return false;
		limit = SS_MAX(limit, limit_of(then->wait));
		samples++;
		const uint64_t end =
			ss_snapshot_process(progress->snapshots[i])->time_ns +
			limit_of(then->wait);
		limits += end > last + LIMITS_APART_NS;
		last = SS_MAX(last, end);
	}
	const uint64_t passes = limit ? progress->elapsed_ns / limit : 0;
	return samples >= WAITS_MIN && limit && passes >= passes_min &&
	       limits >= passes_min &&
	       own->voluntary <= passes + SLACK + (uint64_t)own->stops * STOP_RUNS;
}

/* Whether a thread and all that it waits for do so: they are in a cycle. */
static bool retries_for_ever(const struct ss_progress *progress,
			     const struct ss_task *thread)
{
	for (int i = 0; i < CHAIN_MAX && thread; i++) {
		if (!retries(progress, thread, CYCLE_WAITS))
			return false;
		thread = find_next(progress, thread);
	}
	return thread != NULL;
}

/* It has not run, or only to ask for the GIL again, every 5 ms, or to look whether it can enter a
   monitor. A holder that has not run has held it all the time. */
static bool stands_still(const struct ss_task *thread,
			 const struct ss_thread_progress *own)
{
	return own->movement == SS_MOVEMENT_NONE ||
	       (own->movement == SS_MOVEMENT_WOKEN && thread->wait &&
		(thread->wait->lock == SS_LOCK_PYTHON_GIL ||
		 thread->wait->lock == SS_LOCK_JAVA_MONITOR));
}

/* Whether a thread that has not run may soon give up its wait for another one. */
static bool may_give_up(const struct ss_progress *progress, const struct ss_task *thread)
{
	const struct ss_wait *wait = thread->wait;

	return wait && wait->timed && wait->owner_tid &&
	       wait->lock != SS_LOCK_JAVA_MONITOR &&
	       limit_of(wait) < LONG_LIMIT * progress->elapsed_ns;
}

/*
 * See ss_thread_has_leader(). Where any thread may be the leader, the answer depends on the stack
 * of the follower only. It is found for so many stacks at most: each is compared with
 * those of all threads.
 */
static bool has_leader(const struct ss_progress *progress, const struct ss_task *thread)
{
	enum { NOT_KNOWN, NONE, EXISTS };

	if (thread->wait->owner_unknown != SS_OWNER_NOT_RECORDED)
		return ss_thread_has_leader(progress->last, thread);
	if (thread->stack_id >= SS_MIN(progress->last->stacks.count, (size_t)STACKS_MAX))
		return false;
	uint8_t *known = &progress->leaders[thread->stack_id];
	if (*known == NOT_KNOWN)
		*known = ss_thread_has_leader(progress->last, thread) ? EXISTS : NONE;
	return *known == EXISTS;
}

static bool any_runs(const struct ss_snapshot *process)
{
	return ss_any(process->tasks[SS_TASK_THREAD].count, i,
		      process->tasks[SS_TASK_THREAD].items[i].state == 'R');
}

/* Whether the process runs that holds what a thread waits for, or the one that this process
   waits for, and so on: any of its threads may end the wait. */
static bool other_process_runs(const struct ss_progress *progress,
			       const struct ss_task *root)
{
	const struct ss_wait *wait = root->wait;
	const struct ss_snapshot *process;

	for (size_t i = 0; wait && i < wait->chain_length; i++) {
		if (any_runs(wait->chain[i].snapshot))
			return true;
	}
	if (wait && wait->chain_length)
		wait = wait->chain[wait->chain_length - 1].thread->wait;
	for (size_t i = 0; wait && wait->owner_pid &&
			   (process = ss_snapshot_related(progress->last, i)) != NULL;
	     i++) {
		if (process->process.pid == wait->owner_pid && any_runs(process))
			return true;
	}
	return false;
}

static bool knows_java(const struct ss_snapshot *snapshot)
{
	return ss_any(snapshot->runtimes.count, i,
		      snapshot->runtimes.items[i].kind == SS_FRAME_JAVA &&
			      !snapshot->runtimes.items[i].problem);
}

/* Where the virtual machine can be read, the owner of a monitor is unknown only if it or the
   thread that waits has run meanwhile: that is progress. */
static bool has_moving_owner(const struct ss_snapshot *snapshot,
			     const struct ss_wait *wait)
{
	return wait && wait->lock == SS_LOCK_JAVA_MONITOR && !wait->owner_tid &&
	       knows_java(snapshot);
}

/* Whether a thread made no progress, blocked on a wait that is not idle, and the thread
   at the end of its chain made none either. */
static bool is_stuck(const struct ss_progress *progress, const struct ss_task *thread)
{
	const struct ss_thread_progress *own =
		&progress->threads[index_of(progress, thread)];
	const struct ss_task *root = find_root(progress, thread);
	bool waits = thread->wait && !ss_wait_is_idle(thread->wait);
	bool stopped = thread->state == 'D' || thread->state == 'T' ||
		       thread->state == 't';

	if (thread->wait && thread->wait->stuck_elsewhere && stands_still(thread, own))
		return true;
	if (waits && (has_leader(progress, thread) ||
		      has_moving_owner(progress->last, root->wait) ||
		      other_process_runs(progress, root)))
		return false;
	if (waits && root == thread && only_polls(progress, thread, own))
		return true;
	if (!(stands_still(thread, own) || retries(progress, thread, 0)) ||
	    !(waits || stopped))
		return false;
	return (progress->threads[index_of(progress, root)].movement ==
			SS_MOVEMENT_NONE &&
		!may_give_up(progress, root)) ||
	       retries_for_ever(progress, root);
}

/* Whether a thread made no progress, waiting for a lock of the application. One that is woken again
   and again probably gets it each time, as for a row that all transactions change. A wait without a
   time limit ends when somebody gives the lock up; or once, as PostgreSQL looks for deadlocks. */
static bool is_blocked(const struct ss_progress *progress, const struct ss_task *thread)
{
	const struct ss_thread_progress *own =
		&progress->threads[index_of(progress, thread)];

	if (!thread->wait || thread->wait->purpose != SS_PURPOSE_LOCK)
		return false;
	const uint64_t polls = thread->wait->timed ? progress->elapsed_ns / POLL_NS :
						     (uint64_t)own->stops * STOP_RUNS;
	return own->movement == SS_MOVEMENT_NONE || only_polls(progress, thread, own) ||
	       (own->movement == SS_MOVEMENT_WOKEN && progress->at_rest &&
		own->runs <= 1 + polls);
}

/* Whether it is a thread that each program of its language has. Those of Go run its goroutines. */
static bool is_service(const struct ss_progress *progress, const struct ss_task *thread)
{
	return !progress->languages.go &&
	       ss_task_is_of_runtime(progress->last, thread, &progress->languages);
}

/* Whether the runtime knows that signals execute no code of the program. It handles some itself. */
static bool has_no_signal_code(const struct ss_snapshot *last)
{
	static const uint8_t of_runtime[] = { SIGHUP, SIGQUIT, SIGTERM, SIGUSR2 };
	struct ss_process process = last->process;
	bool known = false;

	for (size_t i = 0; i < SS_ARRAY_SIZE(of_runtime); i++)
		process.handled_signals &= ~(UINT64_C(1) << (of_runtime[i] - 1));
	for (size_t i = 0; i < last->runtimes.count; i++)
		known |= last->runtimes.items[i].no_signal_code;
	return known && !ss_process_expects_signal(&process);
}

/*
 * If no thread of the program has run and each waits for another one, or for processes that wait for
 * these, only a signal handler can end this. In a process with a runtime, the handlers are the
 * runtime's; a main thread that waits for the end of the process is nothing unusual, and threads may
 * wait for work that never comes. So it takes two more threads that do not wait for work, unless
 * nothing of the program handles signals.
 */
static bool is_closed(const struct ss_progress *progress)
{
	const struct ss_snapshot *last = progress->last;
	size_t services = 0;
	size_t waiting = 0;
	bool within = false;
	bool idle = false;

	for (size_t i = 0; i < last->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &last->tasks[SS_TASK_THREAD].items[i];
		if (is_service(progress, thread)) {
			services++;
			continue;
		}
		if (progress->threads[i].movement != SS_MOVEMENT_NONE ||
		    !(thread->state == 'Z' || (thread->wait && thread->wait->closed)))
			return false;
		within |= thread->wait && thread->wait->within_process;
		idle |= thread->wait && thread->wait->purpose == SS_PURPOSE_IDLE;
		/* The first thread of a Java process waits for the one of main(). */
		waiting += !thread->wait ||
			   ((thread->wait->kind != SS_WAIT_JOIN ||
			     thread->tid != progress->last->process.pid) &&
			    thread->wait->purpose != SS_PURPOSE_IDLE);
	}
	if (!within) /* what other processes wait for says it all */
		return false;
	if (services)
		return waiting > 2 || (waiting > 0 && !idle && has_no_signal_code(last));
	return !ss_process_expects_signal(&last->process);
}

/* Whether no thread of the program runs, except for those that wake up and wait again. */
static bool is_at_rest(const struct ss_progress *progress)
{
	for (size_t i = 0; i < progress->last->tasks[SS_TASK_THREAD].count; i++) {
		enum ss_movement movement = progress->threads[i].movement;
		const struct ss_task *thread =
			&progress->last->tasks[SS_TASK_THREAD].items[i];
		if (movement != SS_MOVEMENT_NONE && movement != SS_MOVEMENT_WOKEN &&
		    (movement != SS_MOVEMENT_MOVES || !is_service(progress, thread)))
			return false;
	}
	return true;
}

/* Whether other threads could unlock it: those of the C library are its own. */
static bool is_of_libc(const struct ss_progress *progress,
		       const struct ss_deadlock *deadlock)
{
	const enum ss_lock_type lock = progress->last->tasks[SS_TASK_THREAD]
					       .items[deadlock->threads[0]]
					       .wait->lock;

	return lock == SS_LOCK_LIBC || lock == SS_LOCK_STREAM;
}

/* A thread that is not in the deadlock has run. */
static bool others_run(const struct ss_progress *progress,
		       const struct ss_deadlock *deadlock)
{
	for (size_t i = 0; i < progress->last->tasks[SS_TASK_THREAD].count; i++) {
		enum ss_movement movement = progress->threads[i].movement;
		if (i != deadlock->threads[0] && movement != SS_MOVEMENT_NONE &&
		    movement != SS_MOVEMENT_UNKNOWN)
			return true;
	}
	return false;
}

/*
 * Marks the members of deadlocks of which none has run, except to wait again. With a time limit
 * they are stuck, but a member may give up yet. A thread that waits for a mutex of its own is only
 * stuck as long as others run: any of them may unlock a normal mutex, but not a lock of the C library.
 */
static bool mark_deadlocks(struct ss_progress *progress)
{
	bool found = false;

	for (size_t i = 0; i < progress->last->deadlocks.count; i++) {
		const struct ss_deadlock *deadlock = &progress->last->deadlocks.items[i];
		bool still = true;
		for (size_t j = 0; j < deadlock->count; j++) {
			size_t index = deadlock->threads[j];
			const struct ss_thread_progress *own = &progress->threads[index];
			const struct ss_task *thread =
				&progress->last->tasks[SS_TASK_THREAD].items[index];
			/* Nothing ends the wait for a monitor in a cycle, however often the
			   thread looks. */
			still &= thread->wait->lock == SS_LOCK_JAVA_MONITOR ||
				 (stands_still(thread, own) &&
				  !may_give_up(progress, thread)) ||
				 (own->movement == SS_MOVEMENT_UNKNOWN &&
				  !deadlock->timed) ||
				 retries(progress, thread, CYCLE_WAITS);
		}
		for (size_t j = 0; still && j < deadlock->count; j++)
			progress->threads[deadlock->threads[j]].stuck = true;
		found |= still && !deadlock->timed &&
			 (deadlock->count > 1 || is_of_libc(progress, deadlock) ||
			  !others_run(progress, deadlock));
	}
	return found;
}

/* The same for proven cycles through other processes. */
static bool mark_cycles(struct ss_progress *progress)
{
	bool found = false;

	for (size_t i = 0; i < progress->last->cycles.count; i++) {
		const struct ss_cycle *cycle = &progress->last->cycles.items[i];
		for (size_t j = 0; j < cycle->count; j++) {
			if (cycle->members[j].snapshot != progress->last)
				continue;
			progress->threads[index_of(progress, cycle->members[j].thread)]
				.stuck = true;
			found = true;
		}
	}
	return found;
}

/* Whether a thread has a function that is not of Go's runtime. */
static bool executes_program(const struct ss_snapshot *snapshot,
			     const struct ss_task *thread)
{
	for (size_t i = 0; i < SS_MIN(thread->frame_count, (size_t)FRAMES_MAX); i++) {
		const char *symbol = ss_snapshot_frame(snapshot, thread, i)->symbol;
		if (symbol && !ss_symbol_is_of_go_runtime(symbol))
			return true;
	}
	return false;
}

/* Whether a goroutine of the program computes: Go's locks do not record who holds them, so it
   may be the one that others wait for. */
static bool goroutine_computes(const struct ss_progress *progress)
{
	const struct ss_snapshot *last = progress->last;

	for (size_t i = 0; i < last->tasks[SS_TASK_GOROUTINE].count; i++) {
		const struct ss_task *goroutine =
			&last->tasks[SS_TASK_GOROUTINE].items[i];
		const struct ss_task *thread =
			goroutine->on_thread ?
				ss_snapshot_find_thread(last, goroutine->tid) :
				NULL;
		if (thread && executes_program(last, thread) &&
		    progress->threads[index_of(progress, thread)].movement ==
			    SS_MOVEMENT_BUSY)
			return true;
	}
	return false;
}

static enum ss_verdict find_verdict(struct ss_progress *progress)
{
	bool counts[SS_MOVEMENT_MOVES + 1] = {};
	bool stuck = false;
	bool blocked = false;

	bool deadlock = mark_cycles(progress);
	deadlock |= mark_deadlocks(progress);
	for (size_t i = 0; i < progress->last->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread =
			&progress->last->tasks[SS_TASK_THREAD].items[i];
		counts[progress->threads[i].movement] |= progress->threads[i].movement !=
								 SS_MOVEMENT_MOVES ||
							 !is_service(progress, thread);
		stuck |= progress->threads[i].stuck;
		blocked |= progress->threads[i].blocked;
	}
	const bool computes = goroutine_computes(progress);
	for (size_t i = 0; i < progress->last->tasks[SS_TASK_GOROUTINE].count; i++)
		blocked |= (progress->last->tasks[SS_TASK_GOROUTINE].items[i].blocked &&
			    !computes) ||
			   progress->last->tasks[SS_TASK_GOROUTINE].items[i].endless;
	/* A cancellation may end a cycle of tasks: it is no proven deadlock. */
	for (size_t i = 0; i < progress->last->tasks[SS_TASK_ASYNCIO].count; i++) {
		const struct ss_task *task =
			&progress->last->tasks[SS_TASK_ASYNCIO].items[i];
		blocked |= task->in_cycle || task->endless;
	}
	if (deadlock)
		return SS_VERDICT_DEADLOCK;
	if (stuck)
		return SS_VERDICT_STUCK;
	if (blocked)
		return SS_VERDICT_BLOCKED;
	if (counts[SS_MOVEMENT_BUSY])
		return SS_VERDICT_BUSY;
	return counts[SS_MOVEMENT_MOVES] || counts[SS_MOVEMENT_UNKNOWN] ?
		       SS_VERDICT_MOVING :
		       SS_VERDICT_IDLE;
}

static void classify_threads(struct ss_progress *progress)
{
	const struct ss_snapshot *last = progress->last;

	for (size_t i = 0; i < last->tasks[SS_TASK_THREAD].count; i++) {
		progress->threads[i].thread = i;
		compare_counters(progress, &last->tasks[SS_TASK_THREAD].items[i],
				 &progress->threads[i]);
	}
	progress->closed = is_closed(progress);
	progress->at_rest = is_at_rest(progress);
	for (size_t i = 0; i < last->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &last->tasks[SS_TASK_THREAD].items[i];
		bool idle = thread->wait && thread->wait->purpose >= SS_PURPOSE_IDLE;
		progress->threads[i].stuck =
			!idle && ((progress->closed && !is_service(progress, thread)) ||
				  is_stuck(progress, thread));
		progress->threads[i].blocked = is_blocked(progress, thread);
	}
	progress->verdict = find_verdict(progress);
}

struct ss_error *ss_progress_new(const struct ss_activity *before,
				 const struct ss_activity *after,
				 const struct ss_snapshot *const *snapshots, size_t count,
				 struct ss_progress **ret)
{
	if (!before || !after || count == 0 || after->time_ns < before->time_ns)
		return ss_error_new(
			SS_ERROR_INVALID,
			"progress needs two activities in order of time and a snapshot");
	_cleanup_(ss_progress_cleanup) struct ss_progress *progress =
		calloc(1, sizeof(*progress));
	if (!progress)
		return ss_error_no_memory();
	progress->before = before;
	progress->after = after;
	progress->snapshots = snapshots;
	progress->snapshot_count = count;
	progress->last = snapshots[count - 1];
	progress->languages = ss_snapshot_languages(progress->last);
	progress->elapsed_ns = after->time_ns - before->time_ns;
	progress->strings = ss_intern_new();
	progress->threads = calloc(progress->last->tasks[SS_TASK_THREAD].count + 1,
				   sizeof(*progress->threads));
	progress->leaders = calloc(STACKS_MAX, sizeof(*progress->leaders));
	if (!progress->strings || !progress->threads || !progress->leaders)
		return ss_error_no_memory();
	classify_threads(progress);
	*ret = take_ptr(progress);
	return NULL;
}

void ss_progress_free(struct ss_progress *progress)
{
	if (!progress)
		return;
	free(progress->threads);
	free(progress->leaders);
	ss_intern_free(progress->strings);
	free(progress);
}

const struct ss_thread_progress *ss_progress_thread(const struct ss_progress *progress,
						    size_t index)
{
	return &progress->threads[index];
}

const char *ss_verdict_name(enum ss_verdict verdict)
{
	static const char *const names[] = {
		[SS_VERDICT_IDLE] = "idle",   [SS_VERDICT_MOVING] = "moving",
		[SS_VERDICT_BUSY] = "busy",   [SS_VERDICT_BLOCKED] = "blocked",
		[SS_VERDICT_STUCK] = "stuck", [SS_VERDICT_DEADLOCK] = "deadlock",
	};

	return (size_t)verdict < SS_ARRAY_SIZE(names) ? names[verdict] : "unknown";
}

const char *ss_movement_name(enum ss_movement movement)
{
	static const char *const names[] = {
		[SS_MOVEMENT_UNKNOWN] = "unknown", [SS_MOVEMENT_NONE] = "none",
		[SS_MOVEMENT_WOKEN] = "woken",	   [SS_MOVEMENT_BUSY] = "busy",
		[SS_MOVEMENT_MOVES] = "moves",
	};

	return (size_t)movement < SS_ARRAY_SIZE(names) ? names[movement] : "unknown";
}
