/*
 * Reader of /proc/locks: one line at a time, over bytes that are there already. Format:
 * proc_locks(5), fs/locks.c lock_get_status().
 */
#ifndef SS_PROC_LOCKS_H
#define SS_PROC_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ss_file_lock_type { SS_FILE_LOCK_POSIX, SS_FILE_LOCK_OFD, SS_FILE_LOCK_FLOCK };

struct ss_file_lock {
	uint64_t id; /* lines of one lock and of those that wait for it share it */
	bool waits;  /* "->": not held, but waited for */
	enum ss_file_lock_type type;
	bool write; /* exclusive */
	pid_t pid; /* of our pid namespace; -1: of an open file (OFD); 0: not seen here */
	uint64_t inode;
	uint64_t device; /* major << 32 | minor */
	uint64_t first;
	uint64_t last; /* UINT64_MAX: to the end, wherever it comes to be */
};

/* Reads the line at *cursor (before end) and moves *cursor past it. Lines that do not
   parse, and leases and the like, are skipped. False at the end. */
bool ss_locks_next(const char **cursor, const char *end, struct ss_file_lock *ret);

/* What somebody waits for. */
struct ss_wanted_lock {
	pid_t pid;
	enum ss_file_lock_type type;
	bool write;
	uint64_t inode;
	uint64_t device;
	bool ranged; /* it is known which part, counted from the start of the file */
	uint64_t first;
	uint64_t last; /* as above */
};

/*
 * Finds the lock that is in the way: the one that the kernel lists it behind. Where it is
 * not listed (it was stopped, and is not back yet), the only one that excludes it. False:
 * there is none, or more than one, or it may be its own.
 */
bool ss_locks_find(const char *text, size_t size, const struct ss_wanted_lock *wanted,
		   struct ss_file_lock *ret);

#endif
