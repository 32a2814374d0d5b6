/*
 * System calls that a program could see the stop of its thread in: they return EINTR, or
 * less than they would have transferred, or change memory of the program. A thread in one
 * of them must not be stopped.
 */
#ifndef SS_CAPTURE_FRAGILE_H
#define SS_CAPTURE_FRAGILE_H

#include "process/target.h"

/*
 * Whether that is so of a call in which a thread is blocked. Unknown calls are fragile.
 * Reads depend on their file; without look it is not looked at, and they are not fragile.
 * A look takes a few microseconds and never waits for a file system.
 */
bool ss_fragile_blocked(const struct ss_target *target, pid_t tid,
			const struct ss_syscall_text *call, bool look);

/* The same of a call in which a thread runs. Calls that move no data are not fragile. A
   call whose number is not known (negative) is. */
bool ss_fragile_running(const struct ss_target *target, pid_t tid,
			const struct ss_syscall_text *call);

#endif
