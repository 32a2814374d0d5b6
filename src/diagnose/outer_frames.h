/*
 * Frames counted from the outermost one: what two stacks have in common.
 */
#ifndef SS_DIAGNOSE_OUTER_FRAMES_H
#define SS_DIAGNOSE_OUTER_FRAMES_H

#include "model/snapshot.h"

/* Whether two frames are of the same function; without symbols, whether they have the
   same pc. */
bool ss_frame_is_same_function(const struct ss_frame *a, const struct ss_frame *b);

/* The frame with that number, counted from the outermost one, which is 0. */
const struct ss_frame *ss_outer_frame(const struct ss_snapshot *snapshot,
				      const struct ss_thread *thread,
				      size_t from_outside);

/* The number of outermost frames of two threads with the same functions. */
size_t ss_outer_frames_common(const struct ss_snapshot *a, const struct ss_thread *x,
			      const struct ss_snapshot *b, const struct ss_thread *y);

#endif
