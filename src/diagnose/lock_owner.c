#include "diagnose/lock_owner.h"

#include <stdio.h>

/* The tid field of glibc's struct pthread, and musl's detach_state, lie this near behind
   the thread pointer. */
enum { THREAD_SIZE_MAX = 2304 };

static bool lives(const struct ss_thread *thread)
{
	return thread->state != 'Z' && thread->state != 'X';
}

/* The thread that has this id in its own pid namespace. Mostly that is the id by which
   threads are sorted. */
static const struct ss_thread *find_inner(const struct ss_snapshot *snapshot, pid_t tid)
{
	size_t low = 0;
	size_t high = snapshot->threads.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct ss_thread *thread = &snapshot->threads.items[middle];
		if (thread->tid == tid && thread->inner_tid == tid)
			return thread;
		if (thread->tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
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

static const char *explain_missing(struct ss_snapshot *snapshot, pid_t tid, bool shared)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		       shared ? "thread %d took it, which is of another process or has "
				"ended" :
				"thread %d took it, which has ended or is not shown here",
		       tid); /* it fits */
	return ss_intern_string(snapshot->strings, text);
}

/* Whether the lock may be one of processes of other pid namespaces than that of this one,
   which is not ours. */
static bool is_foreign(const struct ss_snapshot *snapshot, const struct ss_thread *thread)
{
	const struct ss_process *process = &snapshot->process;
	const struct ss_thread_facts *facts =
		ss_facts_find_thread(snapshot->facts, thread->tid);

	return facts && facts->lock_shared && process->inner_pid &&
	       process->inner_pid != process->pid;
}

/* Each namespace has a thread of that id. */
static const char *explain_foreign(struct ss_snapshot *snapshot, pid_t tid)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		       "thread %d took it, of this pid namespace or of another that "
		       "shares the memory",
		       tid); /* it fits */
	return ss_intern_string(snapshot->strings, text);
}

/* The word that glibc waits on is the id of the thread, in its own structure. What has
   no thread pointer (it was not stopped) is known by the id alone. */
static const struct ss_thread *find_joined(const struct ss_snapshot *snapshot,
					   const struct ss_futex *futex,
					   const struct ss_lock_sign *sign,
					   const struct ss_lock_words *lock)
{
	const struct ss_thread *joined =
		find_pointer(snapshot, futex->address, THREAD_SIZE_MAX);

	if (sign->musl)
		return joined;
	if (!joined)
		joined = find_inner(snapshot, (pid_t)lock->value);
	return joined && joined->inner_tid == (pid_t)lock->value ? joined : NULL;
}

/* One of the process that shares the lock. Ids of locks are those of a pid namespace: it
   must be the one that we see. */
static const struct ss_thread *find_outside(const struct ss_snapshot *snapshot,
					    const struct ss_thread *waiter, pid_t tid)
{
	const struct ss_thread_facts *facts =
		ss_facts_find_thread(snapshot->facts, waiter->tid);
	const struct ss_snapshot *other;

	for (size_t i = 0; (other = ss_snapshot_party(snapshot, i)) != NULL; i++) {
		if (other == snapshot || !facts || other->process.pid != facts->sharer)
			continue;
		const struct ss_thread *thread = ss_snapshot_find_thread(other, tid);
		return thread && thread->inner_tid == tid ? thread : NULL;
	}
	return NULL;
}

static const struct ss_thread *find_named(struct ss_snapshot *snapshot,
					  const struct ss_thread *thread,
					  const struct ss_futex *futex,
					  const struct ss_lock_words *lock,
					  const char **why)
{
	bool granted = futex->operation == FUTEX_LOCK_PI ||
		       futex->operation == FUTEX_LOCK_PI2;

	if (is_foreign(snapshot, thread)) {
		*why = explain_foreign(snapshot, lock->owner);
		return NULL;
	}
	const struct ss_thread *owner = find_inner(snapshot, lock->owner);
	if (!owner && (lock->shared || !futex->private))
		owner = find_outside(snapshot, thread, lock->owner);
	if (!owner || !lives(owner)) {
		*why = explain_missing(snapshot, lock->owner,
				       lock->shared || !futex->private);
		return NULL;
	}
	/* Of a PI mutex the kernel makes the waiter the owner before it returns. */
	if (owner == thread && granted) {
		*why = "the thread is just being given it";
		return NULL;
	}
	return owner;
}

const struct ss_thread *
ss_lock_owner_find(struct ss_snapshot *snapshot, const struct ss_thread *thread,
		   const struct ss_futex *futex, const struct ss_lock_sign *sign,
		   const struct ss_lock_words *lock, const char **why)
{
	const struct ss_thread *owner = NULL;

	*why = lock->why;
	if (sign->layout == SS_LOCK_JOIN) {
		owner = find_joined(snapshot, futex, sign, lock);
		*why = owner ? NULL : "the thread has ended or is not shown here";
		return owner && lives(owner) ? owner : NULL;
	}
	if (lock->owner_pointer) {
		owner = find_pointer(snapshot, lock->owner_pointer, 1);
		return owner && lives(owner) ? owner : NULL;
	}
	if (lock->owner)
		return find_named(snapshot, thread, futex, lock, why);
	if (lock->dead)
		*why = "its owner has ended";
	return NULL;
}
