/*
 * Why the kernel refuses, and what to do about it. Only asked after a refusal.
 */
#ifndef SS_TARGET_DENIAL_H
#define SS_TARGET_DENIAL_H

#include "target/target.h"

/* The error for a target that may not be traced: the cause, in the order of cli.md
   ("When it is denied"), and the exact remedy. */
struct ss_error *ss_denial_explain(const struct ss_target *target);

/* The error for a thread that another tracer holds, or NULL if none does. */
struct ss_error *ss_denial_find_tracer(const struct ss_target *target, pid_t tid);

#endif
