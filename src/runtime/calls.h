/*
 * The order of a thread's calls: that of their native frames.
 */
#ifndef SS_RUNTIME_CALLS_H
#define SS_RUNTIME_CALLS_H

#include "runtime/runtime.h"

/* Merges two parts of a list: the calls before an index, and those from it on. Each is in order; of
   the same native frame, those of the first part come first. False: no memory, nothing changed. */
bool ss_runtime_calls_merge(struct ss_runtime_call *calls, size_t first, size_t count);

#endif
