/*
 * Restricts the system calls of a confined process.
 */
#ifndef SS_SANDBOX_SYSCALL_FILTER_H
#define SS_SANDBOX_SYSCALL_FILTER_H

#include <stdbool.h>

/* Forbids to create, change and remove files by name, also by openat2(), with Landlock
   (Linux 5.13). False: this kernel cannot. */
bool ss_syscall_filter_forbid_writing(void);

/* Calls that are not always allowed. A filter cannot see the flags of openat2(). */
enum ss_filter_calls {
	SS_FILTER_OPEN = 1 << 0, /* open() and openat(), for reading only */
	SS_FILTER_OPENAT2 = 1 << 1,
	SS_FILTER_RECVMSG = 1 << 2, /* it receives open files */
};

/*
 * Loads a seccomp filter. It allows reading files, managing private memory and writing to
 * open files, and calls (enum ss_filter_calls). Calls that interpreting never makes (starting
 * programs, sockets, access to other processes) kill the process; all others fail with EPERM.
 * False: the kernel refused.
 */
bool ss_syscall_filter_load(unsigned calls);

#endif
