/*
 * The directory with the reports of "stacksnap core --handler", and how much of the machine
 * handlers may use. Everything in it belongs to root, so what is counted is what the handler has
 * written: users can read their own reports, and change none.
 */
#ifndef SS_CRASH_CLI_REPORTS_H
#define SS_CRASH_CLI_REPORTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "stacksnap.h"
#include "crash/dump.h"

/* How many handlers write reports at once, at most. */
enum { SS_CORE_HANDLERS_MAX = 16 };

/* How many do on a machine with that much memory (bytes), and how much each of the two processes
   of one may allocate: all together a quarter, or 2 GiB if that is more. */
struct ss_core_limits {
	unsigned handlers;
	uint64_t process_memory;
};

struct ss_core_limits ss_core_reports_limits(uint64_t memory);

/* The process that has crashed. */
struct ss_core_process {
	pid_t pid;
	pid_t tid;
	int signal;
	uint64_t time_s; /* since 1970 */
	bool protected;	 /* it had more rights than its user */
	struct ss_dump_process about;
};

struct ss_core_reports {
	int directory; /* O_PATH */
	int state;     /* a file with counts; a lock on it is a slot of a handler */
};

/* Neither is open. */
#define SS_CORE_REPORTS_NONE ((struct ss_core_reports){ .directory = -1, .state = -1 })

/* Opens the directory; creates it if it is missing. Errors: INVALID (a relative path), SYSTEM, DENIED
   (the directory or one above it is a symbolic link, or others can write to it). */
struct ss_error *ss_core_reports_open(const char *path, struct ss_core_reports *ret);

/* Gives the slot back, unless a child process has it too. */
void ss_core_reports_close(struct ss_core_reports *reports);

/* Takes one of so many slots (handlers) for a report that counts to the limits of that user, who may
   have rate of them in a minute. Otherwise counts the crash as refused. Errors: SYSTEM. */
struct ss_error *ss_core_reports_begin(const struct ss_core_reports *reports, uid_t uid,
				       unsigned rate, unsigned handlers);

/* How large one report may be. */
uint64_t ss_core_reports_size_max(uint64_t quota);

/* Stores the name of a new report. Errors: INVALID (it is too long). */
struct ss_error *ss_core_reports_name(const struct ss_core_process *process,
				      const char *format, char ret[NAME_MAX + 1]);

/* Lets a user read a report, if the file system has access control lists. */
void ss_core_reports_allow(int fd, uid_t uid);

/* Removes the oldest reports of the users who have more than their part of quota (bytes). */
void ss_core_reports_expire(const struct ss_core_reports *reports, uint64_t quota);

/* For readers of a directory: whether it is one of a handler; *ret: how many crashes were
   refused. */
bool ss_core_reports_read_refused(int directory, uint64_t *ret);

/* Whether the handler that runs as owner has written that file; *ret: to whose limits it counts. */
bool ss_core_reports_has_written(const char *name, const struct stat *status, uid_t owner,
				 uid_t *ret);

#endif
