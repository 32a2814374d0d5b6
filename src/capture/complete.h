/*
 * Completes a capture: stops threads that were read without stopping them, and merges
 * their registers and stacks into the capture.
 */
#ifndef SS_CAPTURE_COMPLETE_H
#define SS_CAPTURE_COMPLETE_H

#include "data/capture.h"

/* The threads to complete. */
struct ss_complete_filter {
	const struct ss_capture *capture;
	const pid_t *tids; /* sorted */
	size_t count;
};

int ss_complete_compare_tids(const void *a, const void *b);

/* A thread filter; data is a struct ss_complete_filter. Accepts the listed threads that
   are in the capture and were not stopped for it. */
bool ss_complete_accepts(void *data, pid_t tid, const char *name, char state);

/* Whether the stack of a stopped thread of a later capture has changed: then the merge compares
   the areas of both captures. */
bool ss_complete_has_moved(const struct ss_capture *capture,
			   const struct ss_capture *more);

/* Merges a later capture, for which some of the threads were stopped. Takes ownership
   of it. */
void ss_complete_merge(struct ss_capture *capture, struct ss_capture *more);

#endif
