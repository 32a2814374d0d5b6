/*
 * What the stack of a thread reveals about its wait: the names of functions of C
 * libraries, Rust's standard library and runtimes that wait on futexes.
 */
#ifndef SS_DIAGNOSE_WAIT_FUNCTION_H
#define SS_DIAGNOSE_WAIT_FUNCTION_H

#include "model/snapshot.h"

/* What a function waits for, and the layout of the memory around its futex. Each has
   one row in the table of lock.c; see lock.h for how to add one. */
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
	SS_CLASS_COUNT,
};

struct ss_wait_function {
	enum ss_lock_class lock_class;
	const char *name; /* symbol of the function; NULL: none is known */
	bool musl;	  /* otherwise glibc is assumed */
	bool has_symbols; /* at least one function on the stack has a name */
};

/* Finds the innermost known function on the stack; within a signal handler if one
   runs. */
struct ss_wait_function ss_wait_function_find(const struct ss_snapshot *snapshot,
					      const struct ss_thread *thread);

/* What a function waits for. Not for SS_CLASS_JAVA_MONITOR, which takes several functions. */
enum ss_lock_class ss_wait_function_class(const char *symbol);

/* A symbol without the parts that depend on how a libc was built: leading
   underscores, __GI_, a version, suffixes such as .cold. Writes at most size
   bytes, NUL-terminated. */
void ss_wait_function_plain_name(const char *symbol, char *ret, size_t size);

#endif
