/*
 * What "stacksnap hang --watch" needs around its verdicts: the process that a pid file
 * names, and the command that is run when it hangs.
 */
#ifndef SS_CLI_HANG_WATCH_H
#define SS_CLI_HANG_WATCH_H

#include "base/error.h"
#include "stacksnap.h"

/* The pid in the first line of a file. Errors: INVALID, SYSTEM, NO_PROCESS (the file is
   not there, or empty). */
struct ss_error *ss_hang_read_pid(const char *path, pid_t *ret);

/*
 * Runs a shell command, with STACKSNAP_PID and STACKSNAP_VERDICT in its environment, and
 * waits for its end. Errors: SYSTEM. That it failed is told on stderr.
 */
struct ss_error *ss_hang_run_command(const char *command, pid_t pid,
				     enum ss_verdict verdict);

#endif
