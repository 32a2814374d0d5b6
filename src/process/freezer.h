/*
 * Whether the freezer of cgroup v2 keeps a process from running (cgroup-v2.rst,
 * cgroup.freeze). Check before stopping anything: a thread in a ptrace-stop may leave the
 * freezer for a short time.
 */
#ifndef SS_PROCESS_FREEZER_H
#define SS_PROCESS_FREEZER_H

#include "process/target.h"

/*
 * The path of the cgroup that freezes this thread of the target: its own or an ancestor;
 * its own if none is visible. NULL if it is not frozen, or if that is unknown (other
 * mounts, another cgroup namespace, no memory). The caller frees it.
 */
char *ss_freezer_find(const struct ss_target *target, pid_t tid);

#endif
