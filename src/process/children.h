/*
 * The child processes of a target.
 */
#ifndef SS_PROCESS_CHILDREN_H
#define SS_PROCESS_CHILDREN_H

#include "base/vector.h"
#include "process/target.h"

struct ss_children {
	SS_VECTOR(pid_t) pids;
};

/* Stores the living children in ret; none if the kernel lacks CONFIG_PROC_CHILDREN.
   Returns false if memory is exhausted. */
bool ss_target_list_children(const struct ss_target *target, struct ss_children *ret);

#endif
