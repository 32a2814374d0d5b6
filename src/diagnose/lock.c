#include "diagnose/lock.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "diagnose/diagnose.h"

/* A lock and the memory around it, while it is read. */
struct reader {
	const struct ss_memory_fact *memory;
	uint32_t expected; /* value with which the thread began to wait */
	uint8_t size; /* bytes of an address: where it is 4, some locks are laid out differently */
	bool shared;  /* the thread wants to read */
	bool cancels; /* see struct ss_wait_function */
	bool missing;
};

typedef void read_lock(struct reader *r, struct ss_lock_state *lock);

static uint32_t word(struct reader *r, uint64_t address)
{
	uint64_t at = address - r->memory->address;
	uint32_t value;

	if (at > r->memory->size || r->memory->size - at < sizeof(value)) {
		r->missing = true;
		return 0;
	}
	memcpy(&value, r->memory->bytes + at, sizeof(value));
	return value;
}

static bool is_narrow(const struct reader *r)
{
	return r->size == sizeof(uint32_t);
}

static void set_owner(struct ss_lock_state *lock, uint32_t tid)
{
	lock->owner = (pid_t)(tid & FUTEX_TID_MASK);
	lock->unknown = lock->owner ? SS_OWNER_UNSPECIFIED : SS_OWNER_CHANGING;
}

/* The kernel defines this format: futex(2), "Priority-inheritance futexes". */
static void read_pi(struct ss_lock_state *lock)
{
	lock->type = SS_LOCK_PI_MUTEX;
	lock->owner_died = (lock->value & FUTEX_OWNER_DIED) != 0;
	set_owner(lock, lock->value);
}

/* Bits of glibc's __kind (nptl/pthreadP.h). */
enum {
	KIND_TYPE = 3,
	KIND_RECURSIVE = 1,
	KIND_ERRORCHECK = 2,
	KIND_ROBUST = 16,
	KIND_PI = 32,
	KIND_PROTECT = 64,
	KIND_SHARED = 128,
	KIND_KNOWN = 1023, /* and elision: 256, 512 */
};

static void read_mutex(struct reader *r, struct ss_lock_state *lock)
{
	static const enum ss_lock_type types[] = { SS_LOCK_MUTEX, SS_LOCK_RECURSIVE_MUTEX,
						   SS_LOCK_ERRORCHECK_MUTEX,
						   SS_LOCK_MUTEX };
	uint32_t owner = word(r, lock->address + 8);
	uint32_t kind = word(r, lock->address + (is_narrow(r) ? 12 : 16));

	if (r->missing || (kind & ~(uint32_t)KIND_KNOWN)) {
		lock->unknown = SS_OWNER_CORRUPTED;
		return;
	}
	lock->type = types[kind & KIND_TYPE];
	lock->shared = (kind & KIND_SHARED) != 0;
	if (kind & KIND_ROBUST) {
		lock->type = SS_LOCK_ROBUST_MUTEX;
		lock->owner_died = (lock->value & FUTEX_OWNER_DIED) != 0;
		set_owner(lock, lock->value);
	} else if (kind & (KIND_PI | KIND_PROTECT)) {
		lock->unknown = SS_OWNER_NOT_RECORDED;
	} else {
		set_owner(lock, lock->value ? owner : 0);
	}
}

/* The futex of a mutex of musl is its second word. */
enum { MUSL_LOCK_OFFSET = 4 };

/* musl's _m_type and _m_lock. The lock word of a plain mutex is EBUSY, not an id. */
static void read_musl_mutex(struct reader *r, struct ss_lock_state *lock)
{
	enum { NOT_PLAIN = 15, ROBUST = 4 };

	lock->address -= MUSL_LOCK_OFFSET;
	uint32_t type = word(r, lock->address);
	if (r->missing || (type & NOT_PLAIN) == 0) {
		lock->unknown = SS_OWNER_NOT_RECORDED;
		return;
	}
	lock->type = type & ROBUST ? SS_LOCK_ROBUST_MUTEX : SS_LOCK_MUTEX;
	set_owner(lock, lock->value);
}

static void set_readers(struct ss_lock_state *lock, uint32_t readers)
{
	lock->readers = readers;
	lock->unknown = readers ? SS_OWNER_READERS : SS_OWNER_CHANGING;
}

/* glibc's __readers: bit 0: write phase; bit 1: a writer holds it or is next; bit 2:
   readers wait. */
static void read_rwlock(struct reader *r, struct ss_lock_state *lock)
{
	enum {
		WRITER_HOLDS = 3,
		READERS_WAIT = 4,
		READERS_SHIFT = 3,
		WRITE_PHASE_FUTEX = 8,
		WRITERS_FUTEX = 12,
		FUTEX_IS_ONE = 3, /* a futex that is used, with the value 1 */
		CURRENT_WRITER = 24,
		SHARED_NARROW = 0xff00, /* the second of four bytes, before the writer */
	};
	/* The lock is aligned to 8, unless addresses have 4 bytes. Then only a writer waits while
	   there are other writers. */
	const bool writers = is_narrow(r) ? !r->shared && r->expected == FUTEX_IS_ONE :
					    lock->address % 8 != 0;

	/* Of its three futexes, only __readers has this bit. */
	if (writers)
		lock->address -= WRITERS_FUTEX;
	else if (!(r->expected & READERS_WAIT))
		lock->address -= WRITE_PHASE_FUTEX;
	uint32_t state = word(r, lock->address);
	uint32_t writer = word(r, lock->address + CURRENT_WRITER);
	uint32_t shared = word(r, lock->address + CURRENT_WRITER + 4);
	if (is_narrow(r)) {
		const uint32_t flags = writer & SHARED_NARROW;
		writer = shared;
		shared = flags;
	}
	lock->shared = shared != 0;
	if (r->missing)
		lock->unknown = SS_OWNER_CORRUPTED;
	else if ((state & WRITER_HOLDS) == WRITER_HOLDS)
		set_owner(lock, writer);
	else
		set_readers(lock, state >> READERS_SHIFT);
}

static void read_musl_rwlock(struct reader *r, struct ss_lock_state *lock)
{
	uint32_t readers = lock->value & 0x7fffffff;

	(void)r;
	if (readers == 0x7fffffff)
		lock->unknown = SS_OWNER_NOT_RECORDED;
	else
		set_readers(lock, readers);
}

/* __g_signals[2] at the end of a condition variable, which is aligned to 8; with addresses of 4
   bytes, to 4. The word before the first one counts waiters from its fourth bit on; if two words may be that
   one, the usual alignment decides. Since glibc
   2.41, and in later updates of older ones, there is no __g_refs[2] before them, which counts
   those of each group from its second bit on. */
static void read_condvar(struct reader *r, struct ss_lock_state *lock)
{
	enum { SIGNALS = 40, SIGNALS_2_41 = 32, WAITERS_SHIFT = 3, REFS = 24 };
	const bool is_first = word(r, lock->address - 4) >> WAITERS_SHIFT;
	const bool is_second = word(r, lock->address - 8) >> WAITERS_SHIFT;
	const bool first = is_narrow(r) && is_first != is_second ? is_first :
								   lock->address % 8 == 0;
	const uint64_t signals = lock->address - (first ? 0 : 4);
	const uint32_t waiters = word(r, signals - 4) >> WAITERS_SHIFT;
	const uint32_t refs =
		(word(r, signals - REFS) >> 1) + (word(r, signals - REFS + 4) >> 1);
	const bool has_refs = r->missing || (refs > 0 && refs <= waiters);

	lock->address = signals - (has_refs && !r->cancels ? SIGNALS : SIGNALS_2_41);
}

/* struct pthread_barrier: in, current_round, count. */
static void read_barrier(struct reader *r, struct ss_lock_state *lock)
{
	enum { ROUND_OFFSET = 4 };
	uint64_t start = lock->address - ROUND_OFFSET;
	uint32_t in = word(r, start);
	uint32_t round = word(r, start + ROUND_OFFSET);
	uint32_t count = word(r, start + 8);

	if (r->missing || in - round > count)
		return;
	lock->address = start;
	lock->arrived = in - round;
	lock->needed = count;
}

/* _IO_lock_t: the lock, the recursion count (from 1, since glibc 2.41 from 0), the thread
   pointer of the owner. Other locks of the C library, such as that of malloc, are a
   single word: what follows it is the thread pointer of no thread. */
static void read_libc(struct reader *r, struct ss_lock_state *lock)
{
	uint32_t count = word(r, lock->address + 4);
	uint64_t low = word(r, lock->address + 8);
	uint64_t high = is_narrow(r) ? 0 : word(r, lock->address + 12);

	lock->unknown = SS_OWNER_NOT_RECORDED;
	if (!r->missing && lock->value && count < 1000)
		lock->owner_pointer = high << 32 | low;
}

/* Rust's rwlock: the number of readers, or all ones for a writer. */
static void read_rust_rwlock(struct reader *r, struct ss_lock_state *lock)
{
	enum { MASK = (1 << 30) - 1 };
	uint32_t state = word(r, lock->address) & MASK;

	if (state == MASK)
		lock->unknown = SS_OWNER_NOT_RECORDED;
	else
		set_readers(lock, state);
}

/* Writers wait on the word after that. */
static void read_rust_writer(struct reader *r, struct ss_lock_state *lock)
{
	lock->address -= sizeof(uint32_t);
	read_rust_rwlock(r, lock);
}

static void read_ownerless(struct reader *r, struct ss_lock_state *lock)
{
	(void)r;
	lock->unknown = SS_OWNER_NOT_RECORDED;
}

/* It is -1 while threads wait. */
static void read_musl_semaphore(struct reader *r, struct ss_lock_state *lock)
{
	(void)r;
	if ((int32_t)lock->value < 0)
		lock->value = 0;
}

/* The waiter waits on a word on its own stack, which does not reveal the object. */
static void read_musl_waiter(struct reader *r, struct ss_lock_state *lock)
{
	(void)r;
	lock->address = 0;
}

struct lock_class {
	enum ss_wait_kind kind;
	enum ss_lock_type type; /* default; the reader may find another type */
	enum ss_access access;	/* requested by the function */
	read_lock *read;	/* NULL: the memory reveals nothing */
	read_lock *read_musl;
	bool in_musl; /* musl has it, too, with read_musl */
};

/* clang-format off */
static const struct lock_class classes[SS_CLASS_COUNT] = {
	[SS_CLASS_UNKNOWN] = { .kind = SS_WAIT_FUTEX, .in_musl = true },
	[SS_CLASS_MUTEX] = { SS_WAIT_MUTEX, SS_LOCK_MUTEX, SS_ACCESS_NONE,
			     read_mutex, read_musl_mutex, true },
	[SS_CLASS_READ] = { SS_WAIT_RWLOCK, SS_LOCK_RWLOCK, SS_ACCESS_SHARED,
			    read_rwlock, read_musl_rwlock, true },
	[SS_CLASS_WRITE] = { SS_WAIT_RWLOCK, SS_LOCK_RWLOCK, SS_ACCESS_EXCLUSIVE,
			     read_rwlock, read_musl_rwlock, true },
	[SS_CLASS_CONDVAR] = { SS_WAIT_CONDVAR, SS_LOCK_CONDVAR, SS_ACCESS_NONE,
			       read_condvar, read_musl_waiter, true },
	[SS_CLASS_SEMAPHORE] = { SS_WAIT_SEMAPHORE, SS_LOCK_SEMAPHORE, SS_ACCESS_NONE,
				 NULL, read_musl_semaphore, true },
	[SS_CLASS_BARRIER] = { SS_WAIT_BARRIER, SS_LOCK_BARRIER, SS_ACCESS_NONE,
			       read_barrier, read_musl_waiter, true },
	[SS_CLASS_JOIN] = { SS_WAIT_JOIN, SS_LOCK_THREAD, .in_musl = true },
	[SS_CLASS_ONCE] = { SS_WAIT_ONCE, SS_LOCK_ONCE, SS_ACCESS_NONE,
			    read_ownerless, read_ownerless, true },
	[SS_CLASS_STATIC_INIT] = { SS_WAIT_ONCE, SS_LOCK_STATIC_INIT, SS_ACCESS_NONE,
				   read_ownerless, read_ownerless, true },
	[SS_CLASS_LIBC] = { SS_WAIT_MUTEX, SS_LOCK_LIBC, SS_ACCESS_NONE,
			    read_libc, read_ownerless, true },
	[SS_CLASS_RUST_MUTEX] = { SS_WAIT_MUTEX, SS_LOCK_RUST_MUTEX,
				  .read = read_ownerless },
	[SS_CLASS_RUST_READ] = { SS_WAIT_RWLOCK, SS_LOCK_RUST_RWLOCK, SS_ACCESS_SHARED,
				 .read = read_rust_rwlock },
	[SS_CLASS_RUST_WRITE] = { SS_WAIT_RWLOCK, SS_LOCK_RUST_RWLOCK,
				  SS_ACCESS_EXCLUSIVE, .read = read_rust_writer },
	[SS_CLASS_RUST_CONDVAR] = { SS_WAIT_CONDVAR, .type = SS_LOCK_RUST_CONDVAR },
	[SS_CLASS_RUST_ONCE] = { SS_WAIT_ONCE, SS_LOCK_RUST_ONCE,
				 .read = read_ownerless },
	[SS_CLASS_RUST_PARKER] = { SS_WAIT_FUTEX, .type = SS_LOCK_RUST_PARKER },
	[SS_CLASS_JAVA_MONITOR] = { SS_WAIT_MUTEX, .type = SS_LOCK_JAVA_MONITOR },
	[SS_CLASS_JAVA_CLASS] = { SS_WAIT_ONCE, .type = SS_LOCK_JAVA_CLASS },
};
/* clang-format on */

enum ss_wait_kind ss_lock_class_kind(enum ss_lock_class lock_class)
{
	return classes[lock_class].kind;
}

static enum ss_lock_type lock_class_type(enum ss_lock_class lock_class)
{
	return classes[lock_class].type;
}

static enum ss_access lock_class_access(enum ss_lock_class lock_class)
{
	return classes[lock_class].access;
}

bool ss_lock_read(const struct ss_memory_fact *memory, const struct ss_arch *arch,
		  const struct ss_futex *futex, const struct ss_wait_function *function,
		  struct ss_lock_state *ret)
{
	const struct lock_class *lock_class = &classes[function->lock_class];
	struct reader r = { .memory = memory,
			    .expected = futex->value,
			    .size = arch->word,
			    .cancels = function->cancels,
			    .shared = lock_class->access == SS_ACCESS_SHARED };
	bool musl = function->musl && lock_class->in_musl;
	read_lock *read = musl ? lock_class->read_musl : lock_class->read;

	*ret = (struct ss_lock_state){ .address = futex->address,
				       .type = lock_class->type,
				       .value = word(&r, futex->address) };
	if (r.missing)
		return false;
	if (futex->operation == FUTEX_LOCK_PI || futex->operation == FUTEX_LOCK_PI2) {
		ret->address -= musl ? MUSL_LOCK_OFFSET : 0;
		read_pi(ret);
	} else if (read) {
		read(&r, ret);
	}
	return true;
}

/*
 * The owner of a lock: the thread that the lock names, if that can be trusted.
 */

/* The tid field of glibc's struct pthread, and musl's detach_state, are at most this far
   above the thread pointer. */
enum { THREAD_SIZE_MAX = 2304 };

static bool is_alive(const struct ss_task *thread)
{
	return thread->state != 'Z' && thread->state != 'X';
}

/* Finds a thread by the id in its own pid namespace. */
static const struct ss_task *find_inner(const struct ss_snapshot *snapshot, pid_t tid)
{
	const struct ss_task *same = ss_snapshot_find_thread(snapshot, tid);

	if (same && same->inner_tid == tid)
		return same;
	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		if (snapshot->tasks[SS_TASK_THREAD].items[i].inner_tid == tid)
			return &snapshot->tasks[SS_TASK_THREAD].items[i];
	}
	return NULL;
}

static const struct ss_task *find_pointer(const struct ss_snapshot *snapshot,
					  uint64_t pointer, uint64_t size)
{
	const uint64_t below = snapshot->arch->pthread_below;

	for (size_t i = 0; i < snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread = &snapshot->tasks[SS_TASK_THREAD].items[i];
		if (thread->thread_pointer &&
		    pointer - (thread->thread_pointer - below) < size + below)
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
static const struct ss_task *find_joined(const struct ss_snapshot *snapshot,
					 const struct ss_futex *futex,
					 const struct ss_wait_function *function,
					 const struct ss_lock_state *lock)
{
	const struct ss_task *joined =
		find_pointer(snapshot, futex->address, THREAD_SIZE_MAX);

	if (function->musl)
		return joined;
	if (!joined)
		joined = find_inner(snapshot, (pid_t)lock->value);
	return joined && joined->inner_tid == (pid_t)lock->value ? joined : NULL;
}

/* Finds a thread of the process that shares the lock. Locks contain ids of a pid
   namespace, which must be ours. */
static const struct ss_task *find_outside(const struct ss_diagnosis *d, pid_t tid)
{
	const struct ss_snapshot *other;

	for (size_t i = 0; (other = ss_snapshot_related(d->snapshot, i)) != NULL; i++) {
		if (other == d->snapshot || other->process.pid != d->facts->sharer)
			continue;
		const struct ss_task *thread = ss_snapshot_find_thread(other, tid);
		return thread && thread->inner_tid == tid ? thread : NULL;
	}
	return NULL;
}

static const struct ss_task *refuse(struct ss_diagnosis *d, enum ss_owner_unknown reason,
				    pid_t tid)
{
	d->wait->owner_unknown = reason;
	d->wait->owner_unknown_tid = tid;
	return NULL;
}

static const struct ss_task *find_named(struct ss_diagnosis *d,
					const struct ss_futex *futex,
					const struct ss_lock_state *lock)
{
	const struct ss_snapshot *snapshot = d->snapshot;
	bool granted = futex->operation == FUTEX_LOCK_PI ||
		       futex->operation == FUTEX_LOCK_PI2;
	bool shared = lock->shared || !futex->private;

	if (is_foreign(d))
		return refuse(d, SS_OWNER_AMBIGUOUS_TID, lock->owner);
	const struct ss_task *owner = find_inner(snapshot, lock->owner);
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

static const struct ss_task *find(struct ss_diagnosis *d, const struct ss_futex *futex,
				  const struct ss_wait_function *function,
				  const struct ss_lock_state *lock)
{
	const struct ss_task *owner = NULL;

	if (function->lock_class == SS_CLASS_JOIN) {
		owner = find_joined(d->snapshot, futex, function, lock);
		return owner && is_alive(owner) ? owner : refuse(d, SS_OWNER_GONE, 0);
	}
	if (lock->owner_pointer) {
		owner = find_pointer(d->snapshot, lock->owner_pointer, 1);
		if (!owner && d->facts->stream_owner)
			owner = find_inner(d->snapshot, d->facts->stream_owner);
		return owner && is_alive(owner) ? owner : refuse(d, lock->unknown, 0);
	}
	if (lock->owner)
		return find_named(d, futex, lock);
	return refuse(d, lock->owner_died ? SS_OWNER_DIED : lock->unknown, 0);
}

/* The process of an owner; NULL: the process of this snapshot. */
static const struct ss_process *other_process(const struct ss_snapshot *snapshot,
					      const struct ss_task *owner)
{
	const struct ss_snapshot *other;

	for (size_t i = 0; (other = ss_snapshot_related(snapshot, i)) != NULL; i++) {
		if (other != snapshot && other->tasks[SS_TASK_THREAD].count &&
		    owner >= other->tasks[SS_TASK_THREAD].items &&
		    owner < other->tasks[SS_TASK_THREAD].items +
				    other->tasks[SS_TASK_THREAD].count)
			return &other->process;
	}
	return NULL;
}

/* Sets the owner of the wait, or the reason why it is unknown. */
static void lock_owner_fill(struct ss_diagnosis *d, const struct ss_futex *futex,
			    const struct ss_wait_function *function,
			    const struct ss_lock_state *lock)
{
	const struct ss_task *owner = find(d, futex, function, lock);
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

/*
 * A lock of the C library that a thread held when a signal interrupted it, and for which its
 * signal handler waits: the thread waits for itself. Such locks record no owner, but the
 * stack below the handler shows who has it.
 */

enum { NAME_MAX_SIZE = 64, FRAMES_MAX = 64 };

/*
 * Functions of glibc that wait for a lock, and those that run while they hold it; only what
 * must be the same lock. A thread allocates from its own arena, whose lock malloc() and
 * its relatives hold around the functions below; memory that it frees may be of another
 * one. The others hold the only lock of their kind from the begin to the end.
 */
static const struct {
	const char *waits[6];
	const char *holds[6];
} locks[] = {
	{ { "libc_malloc", "libc_calloc", "libc_memalign", "mid_memalign", "malloc",
	    "calloc" },
	  { "int_malloc", "sysmalloc", "int_memalign", "malloc_consolidate",
	    "sysmalloc_mmap", "alloc_perturb" } },
	{ { "tz_convert" }, { "tz_convert" } },
	{ { "vsyslog_internal" }, { "vsyslog_internal" } },
	{ { "random" }, { "random" } },
	{ { "add_to_environ" }, { "add_to_environ" } },
};

static bool contains(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count && names[i]; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* The plain name of a function of the C library, which is the one that waits; otherwise "". */
static void name_of(const struct ss_snapshot *snapshot, const struct ss_task *thread,
		    size_t index, char *ret)
{
	const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, index);

	ret[0] = '\0';
	if (frame->symbol && frame->kind == SS_FRAME_NATIVE &&
	    frame->module == ss_snapshot_frame(snapshot, thread, 0)->module)
		ss_wait_function_plain_name(frame->symbol, ret, NAME_MAX_SIZE);
}

/* The index of the signal frame, or of the end. */
static size_t find_signal(const struct ss_snapshot *snapshot,
			  const struct ss_task *thread, size_t count)
{
	return ss_find(count, i, ss_snapshot_frame(snapshot, thread, i)->signal_frame);
}

/* Which of the locks the handler waits for, in the frames before the signal frame. */
static size_t find_lock(const struct ss_snapshot *snapshot, const struct ss_task *thread,
			size_t signal)
{
	char name[NAME_MAX_SIZE];

	for (size_t i = 0; i < signal; i++) {
		name_of(snapshot, thread, i, name);
		for (size_t j = 0; j < SS_ARRAY_SIZE(locks); j++) {
			if (contains(locks[j].waits, SS_ARRAY_SIZE(locks[j].waits), name))
				return j;
		}
	}
	return SS_ARRAY_SIZE(locks);
}

/* Sets the owner of the wait if it is the waiting thread itself. */
static void interrupted_lock_fill(struct ss_diagnosis *d)
{
	const struct ss_task *thread = d->thread;
	size_t count = SS_MIN(thread->frame_count, (size_t)FRAMES_MAX);
	char name[NAME_MAX_SIZE];

	if (d->wait->lock != SS_LOCK_LIBC || d->wait->owner_tid)
		return;
	size_t signal = find_signal(d->snapshot, thread, count);
	size_t lock = find_lock(d->snapshot, thread, signal);
	if (lock == SS_ARRAY_SIZE(locks))
		return;
	for (size_t i = signal + 1; i < count; i++) {
		name_of(d->snapshot, thread, i, name);
		if (!contains(locks[lock].holds, SS_ARRAY_SIZE(locks[lock].holds), name))
			continue;
		d->wait->owner_tid = thread->tid;
		d->wait->owner_name = thread->name;
		d->wait->owner_unknown = SS_OWNER_UNSPECIFIED;
		d->wait->self_owned = true;
		return;
	}
}

/* Whether a thread initialises a class of Java. One that waits for a class is in the function for that,
   too. */
static bool initialises_class(const struct ss_snapshot *snapshot,
			      const struct ss_task *thread)
{
	static const char initialiser[] = ".<clinit>";
	const bool waits = thread->frame_count &&
			   ss_wait_function_find(snapshot, thread).lock_class ==
				   SS_CLASS_JAVA_CLASS;
	size_t functions = 0;

	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct ss_frame *frame = ss_snapshot_frame(snapshot, thread, i);
		const size_t size = frame->symbol ? strlen(frame->symbol) : 0;
		if (frame->kind == SS_FRAME_JAVA && size > strlen(initialiser) &&
		    strcmp(frame->symbol + size - strlen(initialiser), initialiser) == 0)
			return true;
		functions += ss_wait_function_initialises(frame);
	}
	return functions > (waits ? 1 : 0);
}

/* The class for which a thread waits is not known, but another thread initialises it: the owner is
   known if only one does so with any class. */
static void class_fill(struct ss_diagnosis *d)
{
	const struct ss_task *owner = NULL;

	for (size_t i = 0; i < d->snapshot->tasks[SS_TASK_THREAD].count; i++) {
		const struct ss_task *thread =
			&d->snapshot->tasks[SS_TASK_THREAD].items[i];
		if (thread == d->thread || !initialises_class(d->snapshot, thread))
			continue;
		if (owner) {
			d->wait->owner_unknown = SS_OWNER_RUNTIME;
			return;
		}
		owner = thread;
	}
	if (!owner) {
		d->wait->owner_unknown = SS_OWNER_RUNTIME;
		return;
	}
	d->wait->owner_tid = owner->tid;
	d->wait->owner_name = owner->name;
}

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
	lock_owner_fill(d, futex, function, lock);
	if (d->facts->lock_alone && !wait->owner_tid)
		wait->owner_unknown = SS_OWNER_ALONE;
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

/* Whether a Java thread waits for a notification in Thread.join(), and not in the program's own code. */
static bool is_in_join(const struct ss_diagnosis *d)
{
	static const char *const functions[] = { "java.lang.Object.wait",
						 "java.lang.Thread.join" };
	size_t at = 0;

	for (size_t i = 0; i < d->thread->frame_count; i++) {
		const struct ss_frame *frame =
			ss_snapshot_frame(d->snapshot, d->thread, i);
		if (frame->kind != SS_FRAME_JAVA || !frame->symbol)
			continue;
		while (at < SS_ARRAY_SIZE(functions) &&
		       strncmp(frame->symbol, functions[at], strlen(functions[at])) != 0)
			at++;
		if (at != 0)
			return at < SS_ARRAY_SIZE(functions);
	}
	return false;
}

/* A lock of a runtime, which knows its owner. False: it is none. */
static bool fill_runtime_lock(struct ss_diagnosis *d, const struct ss_futex *futex)
{
	const struct ss_snapshot *snapshot = d->snapshot;
	struct ss_wait *wait = d->wait;

	for (size_t i = 0; i < snapshot->runtime_locks.count; i++) {
		const struct ss_runtime_lock *lock = &snapshot->runtime_locks.items[i];
		if (futex->address < lock->start || futex->address >= lock->end ||
		    (lock->kind == SS_FRAME_JAVA && lock->type == SS_LOCK_THREAD &&
		     !is_in_join(d)))
			continue;
		const struct ss_task *owner =
			ss_snapshot_find_thread(snapshot, lock->owner);
		/* A thread that waits for a lock does not own it, unless it is in a with
		   statement of a threading.Lock. */
		bool self = owner == d->thread && owner;
		if (self && lock->type != SS_LOCK_PYTHON_LOCK &&
		    lock->type != SS_LOCK_THREAD)
			owner = NULL;
		wait->kind = lock->type == SS_LOCK_THREAD ? SS_WAIT_JOIN : SS_WAIT_MUTEX;
		wait->lock = lock->type;
		wait->address = lock->address;
		wait->owner_tid = owner ? owner->tid : 0;
		wait->owner_name = owner ? owner->name : NULL;
		/* Those of other locks are known, but have run since. */
		const bool changing = !owner && lock->type == SS_LOCK_PYTHON_GIL;
		wait->owner_unknown = changing ? SS_OWNER_CHANGING : SS_OWNER_UNSPECIFIED;
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
	if (function->lock_class == SS_CLASS_JAVA_CLASS) {
		class_fill(d);
		return;
	}
	wait->address = futex->address;
	if (!ss_lock_read(&d->facts->lock, d->snapshot->arch, futex, function, &lock))
		wait->owner_unknown = SS_OWNER_UNREADABLE;
	else if (function->lock_class != SS_CLASS_UNKNOWN || lock.owner)
		fill_lock(d, futex, function, &lock);
	else if (!function->has_symbols)
		wait->owner_unknown = SS_OWNER_NO_SYMBOLS;
	/* Without a known function, the word of a PI mutex, which the kernel defines,
	   names the owner. */
	wait->lock = lock.owner || function->lock_class ? lock.type : SS_LOCK_NONE;
	if (wait->lock == SS_LOCK_LIBC && lock.owner_pointer && wait->owner_tid)
		wait->lock = SS_LOCK_STREAM;
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
	d->wait->lock = lock_class_type(function.lock_class);
	d->wait->access = lock_class_access(function.lock_class);
	d->wait->function = function.name;
	ss_time_limit_read_futex(d, &futex);
	if (fill_runtime_lock(d, &futex))
		return true;
	fill(d, &futex, &function);
	interrupted_lock_fill(d);
	return true;
}
