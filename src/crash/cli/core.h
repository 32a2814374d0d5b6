/*
 * The parts of the command "core" that are files of their own.
 */
#ifndef SS_CRASH_CLI_CORE_H
#define SS_CRASH_CLI_CORE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/intern.h"
#include "cli/options.h"
#include "cli/report.h"
#include "crash/dump.h"
#include "data/gather.h"
#include "report/crash.h"
#include "stacksnap.h"

/*
 * The directory with the reports of "stacksnap core --handler", and how much of the machine
 * handlers may use. Everything in it belongs to root, so what is counted is what the handler has
 * written: users can read their own reports, and change none.
 */

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

/*
 * Crash reports, grouped by signature: the JSON that "stacksnap core" and "stacksnap run" write. They
 * are untrusted and may be from other machines: a directory of them is read in the sandbox.
 */

struct ss_crash_reader {
	struct ss_crash_reports reports; /* what was read: strings in strings */
	struct ss_intern *strings;
};

/* False without memory. */
bool ss_crash_reader_init(struct ss_crash_reader *reader);
void ss_crash_reader_deinit(struct ss_crash_reader *reader);

/* Adds what a file contains: one document, or one on each line. Others count as skipped.
   file_ns: when it was written, for reports without a time. False without memory. */
bool ss_crash_reader_add(struct ss_crash_reader *reader, const char *bytes, size_t size,
			 uint64_t file_ns);

/* For struct ss_command: shows the reports in the only argument, a directory. *ret is the exit status.
   Errors: INVALID (the format), SYSTEM, NO_MEMORY. */
struct ss_error *ss_crash_reports_run(const struct ss_report_arguments *arguments,
				      int *ret);

/*
 * stacksnap core --handler: what the kernel runs when a process has crashed
 * (/proc/sys/kernel/core_pattern, core(5)).
 */

/* Where reports are, by default. */
#define SS_CORE_DIRECTORY "/var/lib/stacksnap"

/* What the kernel passes: %P %I %s %t %d %F. */
enum { SS_CORE_HANDLER_ARGUMENTS = 6 };

struct ss_core_handler {
	struct ss_options *settings;
	const char *directory; /* of reports */
	uint64_t quota;	       /* bytes */
	unsigned rate;	       /* reports in a minute */
	const char *forward;   /* a command that gets the whole dump; or NULL */
	const char *arguments[SS_CORE_HANDLER_ARGUMENTS];
	unsigned argument_count;
	/* For --install: what else is on the command line, without the program. */
	const char *const *options;
	size_t option_count;
	size_t action_at;  /* the index of --install in options */
	size_t dry_run_at; /* the same, if there is one */
	bool dry_run;	   /* shows what --install and --uninstall do, and does nothing */
};

/* Makes this program the kernel's crash handler with the options of the command line, and writes a
   file below /etc/sysctl.d. Errors: INVALID (too long for the kernel, or spaces), DENIED, SYSTEM. */
struct ss_error *ss_core_handler_install(const struct ss_core_handler *handler);

/* Restores what was there before, unless another program has set its own since; removes the file.
   Errors: INVALID (it is not installed), DENIED, SYSTEM. */
struct ss_error *ss_core_handler_uninstall(const struct ss_core_handler *handler);

/* Standard input is the dump. Returns the exit status. */
int ss_core_handler_run(const struct ss_core_handler *handler);

/* A ss_core_planner; data: the session. */
bool ss_core_handler_plan_goroutines(void *data, const struct ss_capture *capture,
				     struct ss_gather_plan *ret);

#endif
