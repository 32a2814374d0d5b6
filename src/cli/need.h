/*
 * Of a capture in mode auto: the threads that have to be stopped after all, because their
 * stacks cannot be told without registers that were not read. That takes unwinding, so
 * it is found out in a sandbox; it is believed as far as it names threads of the target.
 */
#ifndef SS_CLI_NEED_H
#define SS_CLI_NEED_H

#include "base/vector.h"
#include "cli/interpret.h"

struct ss_need {
	SS_VECTOR(pid_t) tids;
};

/* Adds the threads to ret. What could not be found out is left out. */
void ss_need_find(const struct ss_interpretation *job, struct ss_need *ret);
void ss_need_deinit(struct ss_need *need);

#endif
