/*
 * This program as a process: its signals, its limit of open files, a watchdog, and children that work on
 * one process each.
 */
#ifndef SS_CLI_PROCESS_H
#define SS_CLI_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "stacksnap.h"
#include "stacksnap/record.h"

/* The signals that end a command which runs until the user stops it. */

/* Blocks SIGINT (Ctrl-C), SIGTERM and SIGHUP, and returns a signalfd for them; -1: there is
   none. */
int ss_signals_watch(void);

/* Blocks those of the signals that are not ignored; *before: the mask before. */
void ss_signals_block(const int *numbers, size_t count, sigset_t *ret, sigset_t *before);

/* CPU time of this process and of the children that it has waited for. */
uint64_t ss_cpu_time_ns(void);

/* Whether one of these signals, which are blocked, has arrived. */
bool ss_signals_are_pending(const sigset_t *signals);

/*
 * The limit of open files. A file is kept open for each module on a stack, and record keeps one
 * for each thread: both may be more than the usual limit of 1,024 files.
 */

/* Raises the limit as far as that is allowed. */
void ss_file_limit_raise(void);

/* Restores the limit that this program was started with, for another program. */
void ss_file_limit_restore(void);

/*
 * Ends the program if reading a process never returns, because its memory or memory map
 * depends on a file system or a userfaultfd(2) that does not answer. No call can interrupt
 * such a read. When the program ends, the kernel releases the target. Where it is slow only because it
 * seldom gets a CPU, it goes on for four times as long.
 */

/* Starts watching a capture whose freeze is limited to timeout_ms (0: the default). Only
   one process can be watched at a time. */
void ss_watchdog_begin(pid_t pid, unsigned timeout_ms);

/* Stops watching. */
void ss_watchdog_end(void);

/* Runs a recorder, watched, until its end or one of these signals, unless it is ignored; all: also then. */
struct ss_error *ss_recorder_run_watched(struct ss_recorder *recorder, pid_t pid,
					 const int *signals, size_t count, bool all);

/*
 * Runs a function for each of several processes at the same time, each in a child process of
 * its own, which opens, captures and interprets one process as if it were the only one.
 */

/* Returns the exit status of the child. */
typedef int ss_each_process_work(void *data, size_t index);

struct ss_each_process {
	size_t count;
	ss_each_process_work *work;
	void *data;
	/* What the children write to standard output is copied to this stream, in their
	   order; NULL: it stays as it is. */
	FILE *out;
	const char *separator; /* between two outputs that are not empty, or NULL */
	/* With it, the outputs are copied when all have ended: those with the lowest rank of their exit
	   status first, none with a negative one. NULL: in their order */
	int (*rank)(int status);
};

/*
 * Runs the children, at most 64 at a time. Passes on SIGINT, SIGTERM and SIGHUP to them, and
 * waits for all of them. ret_statuses has an exit status for each; 128 and the signal's number
 * for one that a signal has ended. The caller must have one thread. Errors: SYSTEM, NO_MEMORY.
 */
struct ss_error *ss_each_process_run(const struct ss_each_process *each,
				     int *ret_statuses);

#endif
