/*
 * Keeping what is started where we are. A new thread or process is put on the CPU that has
 * least to do, which is one where a thread of the target runs as often as not; that thread
 * would have to wait until the other one is moved. Started here, it waits for us, who are
 * about to wait for it.
 */
#ifndef SS_CLI_STAY_H
#define SS_CLI_STAY_H

#include <sched.h>
#include <stdbool.h>

struct ss_stay {
	cpu_set_t before;
	bool known; /* else nothing was changed */
};

/* Of the thread that calls it, and of what it starts. */
void ss_stay_begin(struct ss_stay *stay);
/* Also for what was started: it has the same restriction. Moves nothing. */
void ss_stay_end(const struct ss_stay *stay);

#endif
