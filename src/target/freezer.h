/*
 * Who keeps a process from running by the freezer of cgroups of version 2 (cgroup-v2.rst,
 * cgroup.freeze). To be asked before anything is stopped: a thread that is stopped for a
 * tracer may be out of the freezer for a moment.
 */
#ifndef SS_TARGET_FREEZER_H
#define SS_TARGET_FREEZER_H

#include "target/target.h"

/*
 * The path of the cgroup that freezes this thread of the target: its own or one above
 * that; its own where none above can be seen that does. NULL: it is not frozen, or that
 * cannot be told (other mounts, another cgroup namespace, no memory). free() it.
 */
char *ss_freezer_find(const struct ss_target *target, pid_t tid);

#endif
