/*
 * The shared mapping of the pause meter, which records for how long a running thread did
 * not run. The meter writes it, a bench reads it; a bench may write threshold_ns and
 * reset_wanted. Each field is naturally aligned, little-endian, and written atomically.
 *
 * From Python: struct.unpack_from("<8sIIiiQIIQQQQQ64Q", mapping) gives magic, version,
 * running, pid, tid, threshold_ns, reset_wanted, reset_done, max_gap_ns, gaps_over,
 * gaps_over_ns, samples, now_ns and the histogram. Offsets are in the comments.
 *
 * To measure: write reset_wanted = reset_done + 1, wait until both are equal, do what is to
 * be measured, wait until now_ns is greater than its end (CLOCK_MONOTONIC), and read.
 */
#ifndef PAUSE_METER_H
#define PAUSE_METER_H

#include <stdint.h>

#define PAUSE_METER_MAGIC "SSPAUSE1"
#define PAUSE_METER_VERSION 1
#define PAUSE_METER_THRESHOLD_NS 20000
#define PAUSE_METER_BUCKETS 64

struct pause_meter {
	char magic[8];		   /*  0: PAUSE_METER_MAGIC, written last at the start */
	uint32_t version;	   /*  8 */
	volatile uint32_t running; /* 12: 1 while the thread spins, 0 at the end */
	int32_t pid;		   /* 16 */
	int32_t tid;		   /* 20: of the spinning thread */
	volatile uint64_t threshold_ns; /* 24: gaps from here on are counted */
	volatile uint32_t reset_wanted; /* 32: the reader's request: any new value */
	volatile uint32_t reset_done;	/* 36: the last value that was obeyed */
	volatile uint64_t max_gap_ns;	/* 40: since the reset, like all below */
	volatile uint64_t gaps_over;	/* 48: how many were at threshold_ns or above */
	volatile uint64_t gaps_over_ns; /* 56: and their sum */
	volatile uint64_t samples;	/* 64: readings of the clock */
	volatile uint64_t now_ns;	/* 72: CLOCK_MONOTONIC of the last reading */
	/* 80: bucket i counts the gaps in [2^i, 2^(i+1)) nanoseconds */
	volatile uint64_t histogram[PAUSE_METER_BUCKETS];
}; /* 592 bytes */

#endif
