#include "diagnose/lock_layout.h"

#include <string.h>

/* A lock and what is around it, while it is read. */
struct reader {
	const struct ss_memory_fact *memory;
	bool missing;
};

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

static void name_owner(struct ss_lock_words *lock, uint32_t tid, const char *why)
{
	lock->owner = (pid_t)(tid & FUTEX_TID_MASK);
	lock->why = lock->owner ? NULL : why;
}

static const char changing[] = "it is just being taken or released";

/* The kernel itself knows this format: futex(2), "Priority-inheritance futexes". */
static void read_pi(struct ss_lock_words *lock)
{
	lock->kind = "PI mutex";
	lock->dead = (lock->value & FUTEX_OWNER_DIED) != 0;
	name_owner(lock, lock->value, changing);
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

static void read_mutex(struct reader *r, struct ss_lock_words *lock)
{
	static const char *const names[] = { "mutex", "recursive mutex",
					     "error-checking mutex", "mutex" };
	uint32_t owner = word(r, lock->address + 8);
	uint32_t kind = word(r, lock->address + 16);

	lock->kind = names[kind & KIND_TYPE];
	lock->shared = (kind & KIND_SHARED) != 0;
	if (r->missing || (kind & ~(uint32_t)KIND_KNOWN)) {
		lock->kind = "mutex";
		lock->why = "its memory does not look like a mutex of glibc";
		return;
	}
	if (kind & KIND_ROBUST) {
		lock->kind = "robust mutex";
		lock->dead = (lock->value & FUTEX_OWNER_DIED) != 0;
		name_owner(lock, lock->value, changing);
		return;
	}
	if (kind & (KIND_PI | KIND_PROTECT)) {
		lock->why = "glibc waits in a way that names no owner";
		return;
	}
	name_owner(lock, lock->value ? owner : 0, changing);
}

/* The futex of a mutex of musl is its second word. */
enum { MUSL_LOCK_OFFSET = 4 };

/* musl's _m_type and _m_lock; a plain mutex holds EBUSY and no id. */
static void read_musl_mutex(struct reader *r, struct ss_lock_words *lock)
{
	enum { NOT_PLAIN = 15, ROBUST = 4 };

	lock->address -= MUSL_LOCK_OFFSET;
	uint32_t type = word(r, lock->address);
	lock->kind = type & ROBUST ? "robust mutex" : "mutex";
	if (r->missing || (type & NOT_PLAIN) == 0)
		lock->why = "a plain mutex of musl keeps no owner";
	else
		name_owner(lock, lock->value, changing);
}

static void read_held_by_readers(struct ss_lock_words *lock, uint32_t readers)
{
	lock->readers = readers;
	lock->why = readers ? "readers hold it, and nobody keeps a list of them" :
			      changing;
}

/* glibc's __readers: bit 0 write phase, 1 a writer has it or is next, 2 readers wait. */
static void read_rwlock(struct reader *r, struct ss_lock_words *lock, uint32_t expected)
{
	enum {
		WRITER_HAS_IT = 3,
		READERS_WAIT = 4,
		READERS_SHIFT = 3,
		WRITE_PHASE_FUTEX = 8,
		WRITERS_FUTEX = 12,
		CURRENT_WRITER = 24,
	};

	/* It is aligned to 8; of three futexes in it only __readers has this bit. */
	if (lock->address % 8)
		lock->address -= WRITERS_FUTEX;
	else if (!(expected & READERS_WAIT))
		lock->address -= WRITE_PHASE_FUTEX;
	uint32_t state = word(r, lock->address);
	uint32_t writer = word(r, lock->address + CURRENT_WRITER);
	lock->shared = word(r, lock->address + CURRENT_WRITER + 4) != 0;
	if (r->missing)
		lock->why = "its memory does not look like a rwlock of glibc";
	else if ((state & WRITER_HAS_IT) == WRITER_HAS_IT)
		name_owner(lock, writer, changing);
	else
		read_held_by_readers(lock, state >> READERS_SHIFT);
}

static void read_musl_rwlock(struct ss_lock_words *lock)
{
	uint32_t readers = lock->value & 0x7fffffff;

	if (readers == 0x7fffffff)
		lock->why = "a rwlock of musl keeps no owner";
	else
		read_held_by_readers(lock, readers);
}

/* __g_signals[2] at the end of a condition variable, which is aligned to 8. */
static void read_cond(struct ss_lock_words *lock)
{
	lock->address -= lock->address % 8 ? 44 : 40;
}

/* struct pthread_barrier: in, current_round, count. */
static void read_barrier(struct reader *r, struct ss_lock_words *lock)
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

/* _IO_lock_t: the lock, how often it is held, the thread pointer of its owner. */
static void read_internal(struct reader *r, struct ss_lock_words *lock)
{
	uint32_t count = word(r, lock->address + 4);
	uint64_t low = word(r, lock->address + 8);
	uint64_t high = word(r, lock->address + 12);

	if (!r->missing && lock->value && count && count < 1000)
		lock->owner_pointer = high << 32 | low;
}

/* Rust's rwlock: the number of readers, or all ones for a writer; writers wait on a word
   behind that. */
static void read_rust_rwlock(struct reader *r, struct ss_lock_words *lock, bool writer)
{
	enum { MASK = (1 << 30) - 1 };

	lock->address -= writer ? sizeof(uint32_t) : 0;
	uint32_t state = word(r, lock->address) & MASK;

	if (state == MASK)
		lock->why = "a RwLock of Rust keeps no owner";
	else
		read_held_by_readers(lock, state);
}

static const char *kind_of(enum ss_lock_layout layout)
{
	static const char *const names[] = {
		[SS_LOCK_UNKNOWN] = "futex",
		[SS_LOCK_MUTEX] = "mutex",
		[SS_LOCK_READ] = "rwlock",
		[SS_LOCK_WRITE] = "rwlock",
		[SS_LOCK_COND] = "a signal of condition variable",
		[SS_LOCK_SEM] = "semaphore",
		[SS_LOCK_BARRIER] = "barrier",
		[SS_LOCK_JOIN] = "the end of a thread",
		[SS_LOCK_ONCE] = "another thread in the initialisation (pthread_once)",
		[SS_LOCK_STATIC] = "another thread in the initialisation of",
		[SS_LOCK_INTERNAL] = "a lock inside of the C library",
		[SS_LOCK_RUST_MUTEX] = "Rust Mutex",
		[SS_LOCK_RUST_READ] = "Rust RwLock",
		[SS_LOCK_RUST_WRITE] = "Rust RwLock",
		[SS_LOCK_RUST_COND] = "a signal of Rust Condvar",
		[SS_LOCK_RUST_ONCE] = "another thread in the initialisation (Once)",
		[SS_LOCK_RUST_PARK] = "unpark() of this Rust thread",
		[SS_LOCK_JAVA] = "a Java monitor",
	};

	return names[layout];
}

static void read_glibc(struct reader *r, const struct ss_futex *futex,
		       enum ss_lock_layout layout, struct ss_lock_words *ret)
{
	switch (layout) {
	case SS_LOCK_MUTEX:
		read_mutex(r, ret);
		break;
	case SS_LOCK_READ:
	case SS_LOCK_WRITE:
		read_rwlock(r, ret, futex->value);
		break;
	case SS_LOCK_COND:
		read_cond(ret);
		break;
	case SS_LOCK_BARRIER:
		read_barrier(r, ret);
		break;
	case SS_LOCK_INTERNAL:
		ret->why = "locks like that of malloc keep no owner";
		read_internal(r, ret);
		break;
	case SS_LOCK_RUST_MUTEX:
		ret->why = "a Mutex of Rust keeps no owner";
		break;
	case SS_LOCK_RUST_READ:
	case SS_LOCK_RUST_WRITE:
		read_rust_rwlock(r, ret, layout == SS_LOCK_RUST_WRITE);
		break;
	case SS_LOCK_ONCE:
	case SS_LOCK_STATIC:
	case SS_LOCK_RUST_ONCE:
		ret->why = "an initialisation keeps no owner";
		break;
	default:
		break;
	}
}

static void read_musl(struct reader *r, enum ss_lock_layout layout,
		      struct ss_lock_words *ret)
{
	switch (layout) {
	case SS_LOCK_MUTEX:
		read_musl_mutex(r, ret);
		break;
	case SS_LOCK_READ:
	case SS_LOCK_WRITE:
		read_musl_rwlock(ret);
		break;
	case SS_LOCK_SEM: /* it is -1 where threads wait */
		ret->value = (int32_t)ret->value < 0 ? 0 : ret->value;
		break;
	case SS_LOCK_COND: /* the waiter waits on its own stack, and not on the lock */
	case SS_LOCK_BARRIER:
		ret->address = 0;
		break;
	default:
		break;
	}
}

bool ss_lock_layout_read(const struct ss_memory_fact *memory,
			 const struct ss_futex *futex, const struct ss_lock_sign *sign,
			 struct ss_lock_words *ret)
{
	struct reader r = { .memory = memory };
	bool musl_lock = sign->musl && sign->layout <= SS_LOCK_INTERNAL;

	*ret = (struct ss_lock_words){ .address = futex->address,
				       .kind = kind_of(sign->layout),
				       .value = word(&r, futex->address) };
	if (r.missing)
		return false;
	if (futex->operation == FUTEX_LOCK_PI || futex->operation == FUTEX_LOCK_PI2) {
		ret->address -= musl_lock ? MUSL_LOCK_OFFSET : 0;
		read_pi(ret);
	} else if (musl_lock) {
		read_musl(&r, sign->layout, ret);
	} else {
		read_glibc(&r, futex, sign->layout, ret);
	}
	return true;
}
