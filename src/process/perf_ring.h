/*
 * An event of perf_event_open(2) on one CPU or thread, and the ring into which the kernel writes its
 * records. For one thread at a time.
 */
#ifndef SS_PROCESS_PERF_RING_H
#define SS_PROCESS_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ss_perf_ring {
	int fd;
	struct perf_event_mmap_page *page;
	size_t size;   /* of the data, a power of two */
	uint64_t next; /* position of the record that ss_perf_ring_next() returns */
};

/*
 * Opens an event on a CPU, for all processes, with a ring of that size (a power of two
 * times the page size; half of it, and so on, down to size_min, where the kernel does not
 * lock so much memory). attr is completed with what all events have in common. Returns 0
 * or an error number: ENODEV if the CPU is offline; EACCES, EPERM or ENOSYS if this is not
 * allowed.
 */
int ss_perf_ring_open(struct ss_perf_ring *ring, struct perf_event_attr *attr, int cpu,
		      size_t size, size_t size_min);
/* The same for one thread, on any CPU; ESRCH if it has ended. */
int ss_perf_ring_open_thread(struct ss_perf_ring *ring, struct perf_event_attr *attr,
			     pid_t tid, size_t size);
/* The same, with a ring that keeps the newest records, each before those that are older: only the
   following two functions read it. */
int ss_perf_ring_open_newest(struct ss_perf_ring *ring, struct perf_event_attr *attr,
			     pid_t tid, size_t size);
void ss_perf_ring_close(struct ss_perf_ring *ring);

/* Where the newest record begins; the first one ends at 0. */
uint64_t ss_perf_ring_head(const struct ss_perf_ring *ring);

/* Copies bytes from a position, at most the size of the ring. */
void ss_perf_ring_peek(const struct ss_perf_ring *ring, uint64_t at, void *ret,
		       size_t size);

/* The header of the oldest record. False: there is none. The record stays in the ring
   until ss_perf_ring_drop(). */
bool ss_perf_ring_next(struct ss_perf_ring *ring, struct perf_event_header *ret);

/* Copies bytes of that record, from an offset on. False: it is not that large. */
bool ss_perf_ring_copy(const struct ss_perf_ring *ring, size_t offset, void *ret,
		       size_t size);
void ss_perf_ring_drop(struct ss_perf_ring *ring);

#endif
