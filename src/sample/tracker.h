/*
 * What the tool needs of a tracker besides stacksnap/record.h.
 */
#ifndef SS_SAMPLE_TRACKER_H
#define SS_SAMPLE_TRACKER_H

#include "stacksnap/record.h"

/* 0: the kernel dates loads; otherwise the errno of perf_event_open(2). */
int ss_tracker_perf_errno(const struct ss_tracker *tracker);

#endif
