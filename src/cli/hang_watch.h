/*
 * For "stacksnap hang": runs the command of --exec.
 */
#ifndef SS_CLI_HANG_WATCH_H
#define SS_CLI_HANG_WATCH_H

#include "base/error.h"
#include "stacksnap.h"
#include "diagnose/progress.h"

/*
 * Runs a shell command, with STACKSNAP_PID and STACKSNAP_VERDICT in its environment, and
 * waits for its end. Prints a message if it fails. Errors: SYSTEM.
 */
struct ss_error *ss_hang_run_command(const char *command, pid_t pid,
				     enum ss_verdict verdict);

#endif
