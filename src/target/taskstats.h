/*
 * The kernel's counters of a whole process (taskstats.rst). Reading them through a
 * netlink socket requires CAP_NET_ADMIN in the initial user namespace, and the initial
 * network namespace.
 */
#ifndef SS_TARGET_TASKSTATS_H
#define SS_TARGET_TASKSTATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_taskstats {
	int fd; /* -1: not available */
	uint16_t family;
};

/* Returns false if it is not available. */
bool ss_taskstats_open(struct ss_taskstats *stats);
void ss_taskstats_close(struct ss_taskstats *stats);

/* Number of times its living threads were scheduled: the sum of the third fields of their
   schedstat, plus a constant that changes when a thread ends. Returns false if unknown.
   */
bool ss_taskstats_count_runs(const struct ss_taskstats *stats, pid_t pid, uint64_t *ret);

#endif
