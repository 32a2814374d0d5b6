/*
 * What the stack of a thread reveals about its wait: the names of functions of C
 * libraries, Rust's standard library and runtimes that wait on futexes.
 */
#ifndef SS_DIAGNOSE_WAIT_FUNCTION_H
#define SS_DIAGNOSE_WAIT_FUNCTION_H

#include "base/intern.h"
#include "base/vector.h"
#include "data/snapshot.h"
#include "stacksnap.h"
#include "diagnose/wait_table.h"

/*
 * The table of functions that are known to wait, and what they wait for. Its built-in part
 * is the file wait_functions.txt; stacksnap-waits(5) specifies the format.
 */

/* The text of wait_functions.txt, made by embed.cmake. */
extern const char ss_wait_functions[];
extern const size_t ss_wait_functions_size;

struct ss_wait_entry {
	const char *function; /* may contain '*', which stands for any characters */
	size_t size;	      /* of function */
	const char *words;    /* what it waits for; NULL: no more than the kind */
	enum ss_wait_purpose purpose;
	size_t number; /* of two entries for a function the later one counts */
};

struct ss_wait_table {
	struct ss_intern *strings;
	SS_VECTOR(struct ss_wait_entry) exact; /* ascending by function, then number */
	SS_VECTOR(struct ss_wait_entry) globs; /* in order of number */
	size_t count;
	size_t built_in; /* the first of them */
};

/* A symbol's name without result, parameters, version and what a compiler appends to parts and
   clones of functions. Of the first 257 bytes. Returns its size; *ret points into symbol. */
size_t ss_wait_table_plain_name(const char *symbol, const char **ret);

/* The entry for a symbol, with or without parameters, mangled or not; or NULL. */
const struct ss_wait_entry *ss_wait_table_find(const struct ss_wait_table *table,
					       const char *symbol);

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
	SS_CLASS_JAVA_CLASS,
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
					      const struct ss_task *thread);

/* What a function waits for. Not for SS_CLASS_JAVA_MONITOR and SS_CLASS_JAVA_CLASS, which take several functions. */
enum ss_lock_class ss_wait_function_class(const char *symbol);

/* A symbol without the parts that depend on how a libc was built: leading
   underscores, __GI_, a version, suffixes such as .cold. Writes at most size
   bytes, NUL-terminated. */
void ss_wait_function_plain_name(const char *symbol, char *ret, size_t size);

/* Whether the frame is of HotSpot's function that initialises a class. */
bool ss_wait_function_initialises(const struct ss_frame *frame);

#endif
