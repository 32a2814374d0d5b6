#include "diagnose/lock_owner.h"

/* The tid field of glibc's struct pthread, and musl's detach_state, are at most this far
   above the thread pointer. */
enum { THREAD_SIZE_MAX = 2304 };

static bool is_alive(const struct ss_thread *thread)
{
	return thread->state != 'Z' && thread->state != 'X';
}

/* Finds a thread by the id in its own pid namespace. */
static const struct ss_thread *find_inner(const struct ss_snapshot *snapshot, pid_t tid)
{
	const struct ss_thread *same = ss_snapshot_find_thread(snapshot, tid);

	if (same && same->inner_tid == tid)
		return same;
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		if (snapshot->threads.items[i].inner_tid == tid)
			return &snapshot->threads.items[i];
	}
	return NULL;
}

static const struct ss_thread *find_pointer(const struct ss_snapshot *snapshot,
					    uint64_t pointer, uint64_t size)
{
	for (size_t i = 0; i < snapshot->threads.count; i++) {
		const struct ss_thread *thread = &snapshot->threads.items[i];
		if (thread->thread_pointer && pointer - thread->thread_pointer < size)
			return thread;
	}
	return NULL;
}

/* Whether the lock may be shared with processes in other pid namespaces: the owner's id
   may be from any of them. */
static bool is_foreign(const struct ss_diagnosis *d)
{
	const struct ss_process *process = &d->snapshot->process;

	return d->facts->lock_shared && process->inner_pid &&
	       process->inner_pid != process->pid;
}

/* glibc waits on the thread's id in struct pthread. Without a thread pointer (the
   thread was not stopped), find the thread by that id alone. */
static const struct ss_thread *find_joined(const struct ss_snapshot *snapshot,
					   const struct ss_futex *futex,
					   const struct ss_wait_function *function,
					   const struct ss_lock_state *lock)
{
	const struct ss_thread *joined =
		find_pointer(snapshot, futex->address, THREAD_SIZE_MAX);

	if (function->musl)
		return joined;
	if (!joined)
		joined = find_inner(snapshot, (pid_t)lock->value);
	return joined && joined->inner_tid == (pid_t)lock->value ? joined : NULL;
}

/* Finds a thread of the process that shares the lock. Locks contain ids of a pid
   namespace, which must be ours. */
static const struct ss_thread *find_outside(const struct ss_diagnosis *d, pid_t tid)
{
	const struct ss_snapshot *other;

	for (size_t i = 0; (other = ss_snapshot_related(d->snapshot, i)) != NULL; i++) {
		if (other == d->snapshot || other->process.pid != d->facts->sharer)
			continue;
		const struct ss_thread *thread = ss_snapshot_find_thread(other, tid);
		return thread && thread->inner_tid == tid ? thread : NULL;
	}
	return NULL;
}

static const struct ss_thread *refuse(struct ss_diagnosis *d,
				      enum ss_owner_unknown reason, pid_t tid)
{
	d->wait->owner_unknown = reason;
	d->wait->owner_unknown_tid = tid;
	return NULL;
}

static const struct ss_thread *find_named(struct ss_diagnosis *d,
					  const struct ss_futex *futex,
					  const struct ss_lock_state *lock)
{
	const struct ss_snapshot *snapshot = d->snapshot;
	bool granted = futex->operation == FUTEX_LOCK_PI ||
		       futex->operation == FUTEX_LOCK_PI2;
	bool shared = lock->shared || !futex->private;

	if (is_foreign(d))
		return refuse(d, SS_OWNER_AMBIGUOUS_TID, lock->owner);
	const struct ss_thread *owner = find_inner(snapshot, lock->owner);
	if (!owner && shared)
		owner = find_outside(d, lock->owner);
	if (!owner && !shared && lock->owner == d->facts->forked_owner) {
		d->wait->owner_unknown_pid = snapshot->facts->parent;
		return refuse(d, SS_OWNER_IN_PARENT, lock->owner);
	}
	if (!owner || !is_alive(owner))
		return refuse(d, shared ? SS_OWNER_GONE_OR_ELSEWHERE : SS_OWNER_GONE,
			      lock->owner);
	/* The kernel makes the waiter the owner of a PI mutex before the call returns. */
	if (owner == d->thread && granted)
		return refuse(d, SS_OWNER_BEING_GRANTED, 0);
	return owner;
}

static const struct ss_thread *find(struct ss_diagnosis *d, const struct ss_futex *futex,
				    const struct ss_wait_function *function,
				    const struct ss_lock_state *lock)
{
	const struct ss_thread *owner = NULL;

	if (function->lock_class == SS_CLASS_JOIN) {
		owner = find_joined(d->snapshot, futex, function, lock);
		return owner && is_alive(owner) ? owner : refuse(d, SS_OWNER_GONE, 0);
	}
	if (lock->owner_pointer) {
		owner = find_pointer(d->snapshot, lock->owner_pointer, 1);
		return owner && is_alive(owner) ? owner : refuse(d, lock->unknown, 0);
	}
	if (lock->owner)
		return find_named(d, futex, lock);
	return refuse(d, lock->owner_died ? SS_OWNER_DIED : lock->unknown, 0);
}

/* The process of an owner; NULL: the process of this snapshot. */
static const struct ss_process *other_process(const struct ss_snapshot *snapshot,
					      const struct ss_thread *owner)
{
	const struct ss_snapshot *other;

	for (size_t i = 0; (other = ss_snapshot_related(snapshot, i)) != NULL; i++) {
		if (other != snapshot && other->threads.count &&
		    owner >= other->threads.items &&
		    owner < other->threads.items + other->threads.count)
			return &other->process;
	}
	return NULL;
}

void ss_lock_owner_fill(struct ss_diagnosis *d, const struct ss_futex *futex,
			const struct ss_wait_function *function,
			const struct ss_lock_state *lock)
{
	const struct ss_thread *owner = find(d, futex, function, lock);
	struct ss_wait *wait = d->wait;

	if (lock->readers)
		wait->owner_access = SS_ACCESS_SHARED;
	if (!owner)
		return;
	const struct ss_process *process = other_process(d->snapshot, owner);
	wait->owner_tid = owner->tid;
	wait->owner_name = owner->name;
	wait->owner_pid = process ? process->pid : 0;
	wait->owner_process = process ? process->name : NULL;
	wait->owner_access = wait->access ? SS_ACCESS_EXCLUSIVE : SS_ACCESS_NONE;
	wait->self_owned = owner == d->thread;
}
