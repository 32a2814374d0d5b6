/*
 * Whether a signal that is about to be delivered ends a process (signal(7)).
 */
#ifndef SS_CRASH_FATAL_H
#define SS_CRASH_FATAL_H

#include <signal.h>
#include <stdbool.h>

#include "base/proc_process.h"

/* Whether the default action is to end the process, with or without a core dump. */
bool ss_fatal_by_default(int signal);

/* The same for a process whose dispositions are known. */
bool ss_fatal_is(const siginfo_t *info, const struct ss_status *status);

/*
 * Whether the end is part of normal operation rather than a crash: SIGPIPE, with which all but
 * the last commands of a pipeline end, and what a terminal sends (Ctrl-C, hang-up), also if
 * the process pid has handled it and ends itself by the same signal, as shells do.
 */
bool ss_fatal_is_normal(const siginfo_t *info, pid_t pid);

#endif
