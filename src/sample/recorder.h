/*
 * What the tool needs of a recorder and of a tracker besides stacksnap/record.h.
 */
#ifndef SS_SAMPLE_RECORDER_H
#define SS_SAMPLE_RECORDER_H

#include "stacksnap/record.h"

/*
 * How long the current read of the target (or of one of its children) has lasted; 0: none
 * is in progress. If memory of the target does not answer it grows without end, and only
 * the end of the program ends the read. Any thread may call it.
 */
uint64_t ss_recorder_read_ns(const struct ss_recorder *recorder);

/* 0: the kernel dates loads; otherwise the errno of perf_event_open(2). */
int ss_tracker_perf_errno(const struct ss_tracker *tracker);

#endif
