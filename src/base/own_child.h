/*
 * Child processes of ours that may block for ever in the kernel: on a file whose server
 * (FUSE, NFS) does not respond, or on a disk that is gone. In such a call not even
 * SIGKILL ends a process, so that it must be abandoned: never wait for it.
 */
#ifndef SS_BASE_OWN_CHILD_H
#define SS_BASE_OWN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Set pid, and clear the rest. */
struct ss_own_child {
	pid_t pid;
	uint64_t looked_ns; /* the last look, and what it has seen */
	uint64_t switches;  /* how often it had blocked */
	bool was_blocked;
	uint64_t blocked_ns; /* for how long in the same call */
};

/* How long the child has been blocked in one call, as far as earlier looks can tell: look a
   few times a second. 0: it runs, waits for a CPU, or has ended. One that a signal has stopped is
   continued. */
uint64_t ss_own_child_blocked_ns(struct ss_own_child *child);

/* Kills the child and waits until it has ended. False: it is blocked and was abandoned. */
bool ss_own_child_end(pid_t pid, int *ret_status);

/* In a child: closes all descriptors except these, so that nothing of its parent's stays
   open if it is abandoned. Negative ones are ignored. */
void ss_own_child_close_files(const int *keep, size_t count);

#endif
