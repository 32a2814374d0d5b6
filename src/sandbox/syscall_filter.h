/*
 * Restricts the system calls of a confined process.
 */
#ifndef SS_SANDBOX_SYSCALL_FILTER_H
#define SS_SANDBOX_SYSCALL_FILTER_H

#include <stdbool.h>

/* Forbids to create, change and remove files by name, also by openat2(), with Landlock
   (Linux 5.13). False: this kernel cannot. */
bool ss_syscall_filter_forbid_writing(void);

/*
 * Loads a seccomp filter. It allows reading files, managing memory and writing to open
 * files. Calls that interpreting never makes (starting programs, sockets, access to other
 * processes) kill the process; all others fail with EPERM. A filter cannot see the flags
 * of openat2(), so that call is allowed on request only; so is recvmsg(), which receives
 * open files. False: the kernel refused.
 */
bool ss_syscall_filter_load(bool openat2, bool recvmsg);

#endif
