/*
 * The memory layout of locks: where a lock begins, what its words mean, which owner it
 * names. ss_futex_fill() decides whether to trust that owner.
 *
 * glibc: struct __pthread_mutex_s (bits/struct_mutex.h), struct __pthread_rwlock_arch_t
 * (bits/struct_rwlock.h), struct __pthread_cond_s (bits/thread-shared-types.h), the same
 * from 2.25 to 2.41; the barrier since 2.25; FILE's _IO_lock_t. musl: the accessors of
 * its pthread_impl.h. Rust: the futex locks of std.
 *
 * To add a lock type, or a wait of a runtime or application that its stack reveals:
 *  1. add it to enum ss_lock_type (stacksnap.h), and its name to names.c;
 *  2. add a class to enum ss_lock_class, and the functions that wait
 *     for it to the table in wait_function.c;
 *  3. add a row for the class to the table in lock.c, with a reader if the lock records
 *     an owner or anything else worth showing;
 *  4. add its noun to the table in report/wait_text.c, and its name to stacksnap-json(5).
 */
#ifndef SS_DIAGNOSE_LOCK_H
#define SS_DIAGNOSE_LOCK_H

#include "data/facts.h"
#include "data/futex.h"
#include "data/snapshot.h"
#include "diagnose/wait_table.h"

struct ss_diagnosis;

/*
 * What the stack of a thread reveals about its wait: the names of functions of C
 * libraries, Rust's standard library and runtimes that wait on futexes.
 */

/* What a function waits for, and the layout of the memory around its futex. Each has
   one row in the table of lock.c. */
enum ss_lock_class {
	SS_CLASS_UNKNOWN = 0, /* no known function */
	SS_CLASS_MUTEX,	      /* pthread_mutex_t */
	SS_CLASS_READ,	      /* pthread_rwlock_t */
	SS_CLASS_WRITE,
	SS_CLASS_CONDVAR,
	SS_CLASS_SEMAPHORE,
	SS_CLASS_BARRIER,
	SS_CLASS_JOIN, /* a word in the thread that is joined */
	SS_CLASS_ONCE,
	SS_CLASS_STATIC_INIT,
	SS_CLASS_LIBC,
	SS_CLASS_RUST_MUTEX,
	SS_CLASS_RUST_READ,
	SS_CLASS_RUST_WRITE,
	SS_CLASS_RUST_CONDVAR,
	SS_CLASS_RUST_ONCE,
	SS_CLASS_RUST_PARKER,
	SS_CLASS_JAVA_MONITOR,
	SS_CLASS_JAVA_CLASS,
	SS_CLASS_COUNT,
};

struct ss_wait_function {
	enum ss_lock_class lock_class;
	const char *name; /* symbol of the function; NULL: none is known */
	bool musl;	  /* otherwise glibc is assumed */
	bool cancels;	  /* it called __syscall_cancel(), of glibc 2.41 and later ones */
	bool has_symbols; /* at least one function on the stack has a name */
};

/* Finds the innermost known function on the stack; within a signal handler if one
   runs. */
struct ss_wait_function ss_wait_function_find(const struct ss_snapshot *snapshot,
					      const struct ss_task *thread);

/* What a function waits for. Not for SS_CLASS_JAVA_MONITOR and SS_CLASS_JAVA_CLASS, which take several functions. */
enum ss_lock_class ss_wait_function_class(const char *symbol);

/* A symbol without the parts that depend on how a libc was built: leading
   underscores, __GI_, a version, suffixes such as .cold. Writes at most size
   bytes, NUL-terminated. */
void ss_wait_function_plain_name(const char *symbol, char *ret, size_t size);

/* Whether the frame is of HotSpot's function that initialises a class. */
bool ss_wait_function_initialises(const struct ss_frame *frame);

/*
 * The memory of a lock.
 */

/* The state of a lock, according to its memory. */
struct ss_lock_state {
	enum ss_lock_type type;
	uint64_t address;	/* start of the lock; 0: unknown */
	pid_t owner;		/* owner in the pid namespace of the process; 0: none */
	uint64_t owner_pointer; /* thread pointer of the owner; 0: none */
	enum ss_owner_unknown unknown; /* why it names no owner */
	uint32_t value;		       /* of the futex */
	bool shared;	  /* shared between processes, according to the lock */
	bool owner_died;  /* marked by the kernel */
	uint32_t readers; /* number of readers that hold a rwlock */
	uint32_t arrived; /* at a barrier */
	uint32_t needed;  /* by a barrier; 0: not known */
};

enum ss_wait_kind ss_lock_class_kind(enum ss_lock_class lock_class);

/* Reads the lock around a futex. False: its words were not copied; only type and
   address are set. */
bool ss_lock_read(const struct ss_memory_fact *memory, const struct ss_arch *arch,
		  const struct ss_futex *futex, const struct ss_wait_function *function,
		  struct ss_lock_state *ret);

/*
 * Which goroutines wait for a lock, by the functions on their stacks, and who probably holds it, which Go
 * does not record.
 */

/* Sets lock_function, holder and endless of goroutines. False without memory. */
bool ss_goroutine_locks_find(struct ss_snapshot *snapshot,
			     const struct ss_wait_table *table);

/*
 * Futexes: which lock or condition a thread waits for, and which thread owns it.
 */

/* Fills in the wait of a thread that is blocked on a futex. Returns false and changes
   nothing if it is not. */
bool ss_futex_fill(struct ss_diagnosis *d);

/* Sets the owners of waits for an initialisation, after the threads were diagnosed. */
void ss_initializers_find(struct ss_snapshot *snapshot);

#endif
