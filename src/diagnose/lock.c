#include "diagnose/lock.h"

#include <string.h>

/* A lock and the memory around it, while it is read. */
struct reader {
	const struct ss_memory_fact *memory;
	uint32_t expected; /* value with which the thread began to wait */
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
	uint32_t kind = word(r, lock->address + 16);

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
		CURRENT_WRITER = 24,
	};

	/* The lock is aligned to 8. Of its three futexes, only __readers has this bit. */
	if (lock->address % 8)
		lock->address -= WRITERS_FUTEX;
	else if (!(r->expected & READERS_WAIT))
		lock->address -= WRITE_PHASE_FUTEX;
	uint32_t state = word(r, lock->address);
	uint32_t writer = word(r, lock->address + CURRENT_WRITER);
	lock->shared = word(r, lock->address + CURRENT_WRITER + 4) != 0;
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

/* __g_signals[2] at the end of a condition variable, which is aligned to 8. */
static void read_condvar(struct reader *r, struct ss_lock_state *lock)
{
	(void)r;
	lock->address -= lock->address % 8 ? 44 : 40;
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

/* _IO_lock_t: the lock, the recursion count, the thread pointer of the owner. Other
   locks of the C library, such as that of malloc, are a single word. */
static void read_libc(struct reader *r, struct ss_lock_state *lock)
{
	uint32_t count = word(r, lock->address + 4);
	uint64_t low = word(r, lock->address + 8);
	uint64_t high = word(r, lock->address + 12);

	lock->unknown = SS_OWNER_NOT_RECORDED;
	if (!r->missing && lock->value && count && count < 1000)
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
};
/* clang-format on */

enum ss_wait_kind ss_lock_class_kind(enum ss_lock_class lock_class)
{
	return classes[lock_class].kind;
}

enum ss_lock_type ss_lock_class_type(enum ss_lock_class lock_class)
{
	return classes[lock_class].type;
}

enum ss_access ss_lock_class_access(enum ss_lock_class lock_class)
{
	return classes[lock_class].access;
}

bool ss_lock_read(const struct ss_memory_fact *memory, const struct ss_futex *futex,
		  const struct ss_wait_function *function, struct ss_lock_state *ret)
{
	const struct lock_class *lock_class = &classes[function->lock_class];
	struct reader r = { .memory = memory, .expected = futex->value };
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
