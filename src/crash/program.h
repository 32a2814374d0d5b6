/*
 * Programs that must not stay traced. They are looked at when they have been executed, before
 * their first instruction.
 */
#ifndef SS_CRASH_PROGRAM_H
#define SS_CRASH_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Releases a process that is in its stop after execve(2) (PTRACE_EVENT_EXEC) if it must not
 * stay traced: a debugger, whose children it could not trace; and a program that did not get
 * the rights of its file because its tracer is unprivileged (execve(2)). That one makes the same
 * execve() again, untraced. True: it was released.
 */
bool ss_program_release(pid_t pid);

#endif
