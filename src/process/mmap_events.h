/*
 * What processes map to execute it: records of perf_event_open(2) (PERF_RECORD_MMAP2), dated by the
 * kernel. There is one event for each CPU, not for each thread. It needs CAP_PERFMON (or
 * CAP_SYS_ADMIN), or a perf_event_paranoid of 0 or less. The kernel reports no unmapping and no
 * mremap(2), and for processes that share their memory only the one that maps. For one thread at a
 * time.
 */
#ifndef SS_PROCESS_MMAP_EVENTS_H
#define SS_PROCESS_MMAP_EVENTS_H

#include <sys/types.h>

#include "base/vector.h"
#include "process/perf_ring.h"

enum { SS_MMAP_BUILD_ID_MAX = 20, SS_MMAP_PATH_MAX = 4096 };

/* What a process mapped with the right to execute it, or got that right to later. */
struct ss_mmap_event {
	pid_t pid;
	bool anonymous;	  /* not of a file, or of one whose path is not known */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t start;
	uint64_t size;
	uint64_t offset; /* in the file */
	uint8_t build_id[SS_MMAP_BUILD_ID_MAX];
	uint8_t build_id_size; /* 0: none is known (before Linux 5.12) */
	char path[SS_MMAP_PATH_MAX];
};

/* Zeroed, it is closed. */
struct ss_mmap_events {
	SS_VECTOR(struct ss_perf_ring) rings;
	size_t reading; /* index of the ring that is read */
	uint64_t lost;	/* records for which there was no room */
};

/* Returns 0 or an error number: EACCES, EPERM or ENOSYS if this is not allowed; EMFILE if there are
   too few descriptors. */
int ss_mmap_events_open(struct ss_mmap_events *events);
void ss_mmap_events_close(struct ss_mmap_events *events);

static inline bool ss_mmap_events_is_open(const struct ss_mmap_events *events)
{
	return events->rings.count > 0;
}

/* The next event of any process; those of a CPU are in order. False: there is none. */
bool ss_mmap_events_next(struct ss_mmap_events *events, struct ss_mmap_event *ret);

#endif
