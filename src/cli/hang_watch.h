/*
 * For "stacksnap hang": reads pid files, and runs the command of --exec.
 */
#ifndef SS_CLI_HANG_WATCH_H
#define SS_CLI_HANG_WATCH_H

#include "base/error.h"
#include "stacksnap.h"

/* Reads the pid in the first line of a file. Errors: INVALID, SYSTEM, NO_PROCESS (the file
   does not exist, or is empty). */
struct ss_error *ss_hang_read_pid(const char *path, pid_t *ret);

/*
 * Runs a shell command, with STACKSNAP_PID and STACKSNAP_VERDICT in its environment, and
 * waits for its end. Prints a message if it fails. Errors: SYSTEM.
 */
struct ss_error *ss_hang_run_command(const char *command, pid_t pid,
				     enum ss_verdict verdict);

#endif
