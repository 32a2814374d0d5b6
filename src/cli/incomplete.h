/*
 * Reports what is missing from a snapshot: one line on stderr for each reason.
 */
#ifndef SS_CLI_INCOMPLETE_H
#define SS_CLI_INCOMPLETE_H

#include <stddef.h>

#include "stacksnap.h"

/* Counts threads with an incomplete stack, and threads that were not captured. */
size_t ss_incomplete_count(const struct ss_snapshot *snapshot);

/* Prints them by reason. max_stack is the limit of the copy of each stack. */
void ss_incomplete_print(const struct ss_snapshot *snapshot, size_t max_stack);

/* Prints which modules could not be read, if functions have no names for that reason. */
void ss_incomplete_print_modules(const struct ss_snapshot *snapshot);

#endif
