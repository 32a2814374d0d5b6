/*
 * What is missing from a snapshot: one line on stderr for each reason.
 */
#ifndef SS_CLI_INCOMPLETE_H
#define SS_CLI_INCOMPLETE_H

#include <stddef.h>

#include "stacksnap.h"

/* Threads whose stack is not whole, and threads that are not there at all. */
size_t ss_incomplete_count(const struct ss_snapshot *snapshot);

/* Tells them by the reason. max_stack is what was copied of a stack at most. */
void ss_incomplete_print(const struct ss_snapshot *snapshot, size_t max_stack);

#endif
