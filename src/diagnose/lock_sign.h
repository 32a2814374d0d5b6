/*
 * What the stack of a thread says of the lock that it waits for: the functions of a C
 * library, or of Rust's, that wait on futexes have names.
 */
#ifndef SS_DIAGNOSE_LOCK_SIGN_H
#define SS_DIAGNOSE_LOCK_SIGN_H

#include "model/snapshot.h"

/* How the memory around the futex is laid out, and with it who says who the owner is. */
enum ss_lock_layout {
	SS_LOCK_UNKNOWN = 0, /* no function that is known */
	SS_LOCK_MUTEX,	     /* pthread_mutex_t */
	SS_LOCK_READ,	     /* pthread_rwlock_t */
	SS_LOCK_WRITE,
	SS_LOCK_COND, /* pthread_cond_t */
	SS_LOCK_SEM,  /* sem_t */
	SS_LOCK_BARRIER,
	SS_LOCK_JOIN, /* a word in the thread that is to end */
	SS_LOCK_ONCE,
	SS_LOCK_STATIC,	  /* the guard of a C++ variable that is being initialised */
	SS_LOCK_INTERNAL, /* a lock inside of the C library */
	SS_LOCK_RUST_MUTEX,
	SS_LOCK_RUST_READ,
	SS_LOCK_RUST_WRITE,
	SS_LOCK_RUST_COND,
	SS_LOCK_RUST_ONCE,
	SS_LOCK_RUST_PARK,
	SS_LOCK_JAVA, /* a monitor of a Java virtual machine */
};

struct ss_lock_sign {
	enum ss_lock_layout layout;
	bool musl;   /* else it is taken for glibc */
	bool named;  /* some function of the stack has a name */
	bool unsure; /* the stack is a guess where the function was found */
};

/* Goes outwards from the innermost frame to the first function that is known. */
struct ss_lock_sign ss_lock_sign_find(const struct ss_snapshot *snapshot,
				      const struct ss_thread *thread);

/* A name without what depends on how a libc was built: underscores in front, __GI_, a
   version, the endings that compilers give to parts of functions. Writes at most size
   bytes, NUL-terminated. */
void ss_lock_sign_plain_name(const char *symbol, char *ret, size_t size);

#endif
