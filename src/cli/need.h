/*
 * Of a capture in mode auto: the threads that have to be stopped after all, because their
 * stacks cannot be told without registers that were not read. The sandbox finds that
 * out; it is believed as far as it names threads of the target.
 */
#ifndef SS_CLI_NEED_H
#define SS_CLI_NEED_H

#include <stdio.h>

#include "cli/interpret.h"

/* Whether there are such threads. */
bool ss_need_is_any(const struct ss_snapshot *snapshot);

/* Writes their ids. */
void ss_need_write(const struct ss_snapshot *snapshot, FILE *out);

/* Has the capture completed by the threads that were written to the file fd. */
void ss_need_complete(const struct ss_interpretation *job, int fd);

#endif
