#include "diagnose/futex.h"

#include <string.h>

#include "diagnose/interrupted_lock.h"
#include "diagnose/lock_owner.h"
#include "diagnose/time_limit.h"

/* PyThread_acquire_lock_timed() calls sem_clockwait(), which calls a few of its own. */
enum { PYTHON_FRAMES = 8 };

/* The program's variable that is the lock or contains it. */
static void set_symbol(struct ss_diagnosis *d, const struct ss_futex *futex)
{
	const struct ss_lock_place *place =
		ss_snapshot_find_place(d->snapshot, futex->address);
	uint64_t address = d->wait->address;

	if (!address || !place || !place->symbol || address < place->symbol_address)
		return;
	d->wait->symbol = place->symbol;
	d->wait->symbol_offset = address - place->symbol_address;
}

static void fill_lock(struct ss_diagnosis *d, const struct ss_futex *futex,
		      const struct ss_wait_function *function,
		      const struct ss_lock_state *lock)
{
	struct ss_wait *wait = d->wait;

	wait->address = lock->address;
	wait->readers = lock->readers;
	wait->arrived = lock->arrived;
	wait->needed = lock->needed;
	if (function->lock_class == SS_CLASS_SEMAPHORE)
		wait->value = lock->value;
	ss_lock_owner_fill(d, futex, function, lock);
}

/*
 * If the kernel refuses a PI mutex (a deadlock, or the owner has ended), glibc and musl
 * wait forever on a zero word of their own; nobody waits on a mutex whose word is zero.
 */
static bool is_refused(const struct ss_futex *futex,
		       const struct ss_wait_function *function)
{
	return function->lock_class == SS_CLASS_MUTEX && futex->value == 0 &&
	       (futex->operation == FUTEX_WAIT || futex->operation == FUTEX_WAIT_BITSET);
}

/* A lock of a runtime, which knows its owner. False: it is none. */
static bool fill_runtime_lock(struct ss_diagnosis *d, const struct ss_futex *futex)
{
	const struct ss_snapshot *snapshot = d->snapshot;
	struct ss_wait *wait = d->wait;

	for (size_t i = 0; i < snapshot->runtime_locks.count; i++) {
		const struct ss_runtime_lock *lock = &snapshot->runtime_locks.items[i];
		if (futex->address < lock->start || futex->address >= lock->end)
			continue;
		const struct ss_thread *owner =
			ss_snapshot_find_thread(snapshot, lock->owner);
		/* A thread that waits for a lock does not own it, unless it is in a with
		   statement of a threading.Lock. */
		bool self = owner == d->thread && owner;
		if (self && lock->type != SS_LOCK_PYTHON_LOCK)
			owner = NULL;
		wait->kind = SS_WAIT_MUTEX;
		wait->lock = lock->type;
		wait->address = lock->address;
		wait->owner_tid = owner ? owner->tid : 0;
		wait->owner_name = owner ? owner->name : NULL;
		wait->owner_unknown = owner ? SS_OWNER_UNSPECIFIED : SS_OWNER_CHANGING;
		wait->self_owned = self && owner;
		/* As those of versions that use the semaphores of the C library */
		if (!owner && lock->type == SS_LOCK_PYTHON_LOCK) {
			wait->kind = SS_WAIT_SEMAPHORE;
			wait->owner_unknown = SS_OWNER_UNSPECIFIED;
		}
		/* Threads look at times whether they can enter a monitor, or ask the holder of
		   the GIL to release it. There is no limit. */
		if (lock->type == SS_LOCK_JAVA_MONITOR ||
		    lock->type == SS_LOCK_PYTHON_GIL) {
			wait->timed = false;
			wait->timeout_ns = wait->left_ns = -1;
		}
		return true;
	}
	return false;
}

/* Python's locks are semaphores. */
static bool is_python_lock(const struct ss_diagnosis *d)
{
	for (size_t i = 0; i < SS_MIN(d->thread->frame_count, (size_t)PYTHON_FRAMES);
	     i++) {
		const struct ss_frame *frame =
			ss_snapshot_frame(d->snapshot, d->thread, i);
		if (frame->kind == SS_FRAME_NATIVE && frame->symbol &&
		    strcmp(frame->symbol, "PyThread_acquire_lock_timed") == 0)
			return true;
	}
	return false;
}

static void fill(struct ss_diagnosis *d, const struct ss_futex *futex,
		 const struct ss_wait_function *function)
{
	struct ss_wait *wait = d->wait;
	struct ss_lock_state lock;

	if (is_refused(futex, function)) {
		wait->lock = SS_LOCK_PI_MUTEX;
		wait->owner_unknown = SS_OWNER_REFUSED;
		return;
	}
	/* Threads that enter a monitor wait for a notification, not on the monitor. */
	if (function->lock_class == SS_CLASS_JAVA_MONITOR) {
		wait->owner_unknown = SS_OWNER_RUNTIME;
		return;
	}
	wait->address = futex->address;
	if (!ss_lock_read(&d->facts->lock, futex, function, &lock))
		wait->owner_unknown = SS_OWNER_UNREADABLE;
	else if (function->lock_class != SS_CLASS_UNKNOWN || lock.owner)
		fill_lock(d, futex, function, &lock);
	else if (!function->has_symbols)
		wait->owner_unknown = SS_OWNER_NO_SYMBOLS;
	/* Without a known function, the word of a PI mutex, which the kernel defines,
	   names the owner. */
	wait->lock = lock.owner || function->lock_class ? lock.type : SS_LOCK_NONE;
	if (lock.owner && function->lock_class == SS_CLASS_UNKNOWN)
		wait->kind = SS_WAIT_MUTEX;
	set_symbol(d, futex);
	if (wait->lock == SS_LOCK_SEMAPHORE && is_python_lock(d))
		wait->lock = SS_LOCK_PYTHON_LOCK;
}

static void fill_several(struct ss_diagnosis *d)
{
	const uint64_t *args = d->facts->call.args;
	const struct ss_futex limit = { .timed = args[3] != 0,
					.timeout_arg = 3,
					.clock = (clockid_t)args[4] };

	d->wait->kind = SS_WAIT_FUTEX;
	d->wait->futexes = (uint32_t)args[1];
	ss_time_limit_read_futex(d, &limit);
}

bool ss_futex_fill(struct ss_diagnosis *d)
{
	struct ss_futex futex;

	if (d->facts->call.id == SS_SYS_FUTEX_WAITV) {
		fill_several(d);
		return true;
	}
	if (!ss_futex_parse(&d->facts->call, &futex))
		return false;
	const struct ss_wait_function function =
		ss_wait_function_find(d->snapshot, d->thread);
	if (futex.restarted && function.lock_class == SS_CLASS_UNKNOWN)
		return false;
	if (futex.restarted) /* the stack shows which call is being restarted */
		d->wait->syscall = ss_intern_string(d->snapshot->strings, "futex");
	d->wait->kind = ss_lock_class_kind(function.lock_class);
	d->wait->lock = ss_lock_class_type(function.lock_class);
	d->wait->access = ss_lock_class_access(function.lock_class);
	d->wait->function = function.name;
	ss_time_limit_read_futex(d, &futex);
	if (fill_runtime_lock(d, &futex))
		return true;
	fill(d, &futex, &function);
	ss_interrupted_lock_fill(d);
	return true;
}
