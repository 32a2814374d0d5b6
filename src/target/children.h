/*
 * The processes that a target has started.
 */
#ifndef SS_TARGET_CHILDREN_H
#define SS_TARGET_CHILDREN_H

#include "base/vector.h"
#include "target/target.h"

struct ss_children {
	SS_VECTOR(pid_t) pids;
};

/* Replaces ret by the children that live now; none where the kernel does not list them
   (CONFIG_PROC_CHILDREN). False without memory. */
bool ss_target_list_children(const struct ss_target *target, struct ss_children *ret);

#endif
