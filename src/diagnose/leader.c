#include "diagnose/leader.h"

#include <string.h>

#include "diagnose/outer_frames.h"

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
	for (size_t i = 0; i < count; i++) {
		if (fds[i].what && fds[i].what->listening)
			return true;
	}
	return false;
}

/* Datagrams for nobody in particular are requests; data of a connection is an answer that
   may never come. */
static bool receives_requests(const struct ss_descriptor *descriptor)
{
	return descriptor && descriptor->protocol &&
	       strncmp(descriptor->protocol, "UDP", 3) == 0 &&
	       descriptor->remote.port == 0;
}

static bool waits_for_connections(const struct ss_wait *wait)
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
		return waits_for_connections(wait);
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
static bool is_in(const struct ss_snapshot *snapshot, const struct ss_thread *thread,
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
static bool same_function(const struct ss_snapshot *a, const struct ss_thread *follower,
			  const struct ss_snapshot *b, const struct ss_thread *leader)
{
	bool connections = waits_for_connections(leader->wait);
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
static bool may_exist(const struct ss_snapshot *snapshot,
		      const struct ss_thread *follower)
{
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		if (thread != follower && waits_for_work(thread->wait) &&
		    same_function(snapshot, follower, snapshot, thread))
			return true;
	}
	return false;
}

bool ss_leader_exists(const struct ss_snapshot *snapshot,
		      const struct ss_thread *follower)
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
