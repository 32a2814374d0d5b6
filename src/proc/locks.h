/*
 * Parser for /proc/locks, one line at a time. Format: proc_locks(5), fs/locks.c
 * lock_get_status().
 */
#ifndef SS_PROC_LOCKS_H
#define SS_PROC_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ss_file_lock_type { SS_FILE_LOCK_POSIX, SS_FILE_LOCK_OFD, SS_FILE_LOCK_FLOCK };

struct ss_file_lock {
	uint64_t id; /* shared by the lines of a lock and its waiters */
	bool waits;  /* "->": a waiter */
	enum ss_file_lock_type type;
	bool write; /* exclusive */
	/* in our pid namespace; -1: owned by an open file (OFD); 0: not visible */
	pid_t pid;
	uint64_t inode;
	uint64_t device; /* major << 32 | minor */
	uint64_t first;
	uint64_t last; /* UINT64_MAX: to the end of the file */
};

/* Parses the line at *cursor and advances *cursor. Skips invalid lines and other kinds,
   such as leases. Returns false at the end. */
bool ss_locks_next(const char **cursor, const char *end, struct ss_file_lock *ret);

/* A lock that a thread requests and waits for. */
struct ss_lock_request {
	pid_t pid;
	enum ss_file_lock_type type;
	bool write;
	uint64_t inode;
	uint64_t device;
	bool ranged; /* the range is known, from the start of the file */
	uint64_t first;
	uint64_t last; /* as above */
};

/*
 * Finds the blocking lock: the one under which the kernel lists the waiter. If the waiter
 * is not listed (it was stopped and has not resumed its wait), the only conflicting lock.
 * Returns false if there is none or more than one, or if the lock may be the waiter's
 * own.
 */
bool ss_locks_find(const char *text, size_t size, const struct ss_lock_request *request,
		   struct ss_file_lock *ret);

#endif
