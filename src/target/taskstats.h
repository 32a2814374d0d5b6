/*
 * What the kernel counts of all threads of a process together (taskstats.rst). It is
 * asked through a netlink socket, needs CAP_NET_ADMIN in the first user namespace, and is
 * not to be had in other network namespaces.
 */
#ifndef SS_TARGET_TASKSTATS_H
#define SS_TARGET_TASKSTATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_taskstats {
	int fd; /* -1: not to be had */
	uint16_t family;
};

/* False: it is not to be had. */
bool ss_taskstats_open(struct ss_taskstats *stats);
void ss_taskstats_close(struct ss_taskstats *stats);

/* How often its living threads were put on a CPU: the sum of the third figures of their
   schedstat, and a part that stays the same until one of them ends. False: not known. */
bool ss_taskstats_count_runs(const struct ss_taskstats *stats, pid_t pid, uint64_t *ret);

#endif
