/*
 * Completing a capture: threads that were read without a stop are stopped after all, and
 * what that tells is merged into the capture.
 */
#ifndef SS_CAPTURE_COMPLETE_H
#define SS_CAPTURE_COMPLETE_H

#include "model/capture.h"

/* Threads to be completed. */
struct ss_wanted {
	const struct ss_capture *capture;
	const pid_t *tids; /* sorted */
	size_t count;
};

int ss_complete_compare_tids(const void *a, const void *b);

/* A filter whose data is a struct ss_wanted: threads of these ids that are in the
   capture, and were not stopped for it. */
bool ss_complete_wants(void *data, pid_t tid, const char *name, char state);

/* Merges more, a later capture of some threads in which they were stopped, into capture,
   and takes it over. */
void ss_complete_merge(struct ss_capture *capture, struct ss_capture *more);

#endif
