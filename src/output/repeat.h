/*
 * Finds deep recursion: a short sequence of frames that repeats many times.
 */
#ifndef SS_OUTPUT_REPEAT_H
#define SS_OUTPUT_REPEAT_H

#include <stddef.h>

#include "stacksnap.h"

struct ss_repeat {
	size_t period; /* frames in the sequence */
	size_t times;  /* occurrences in a row; 0: no repetition */
};

/* Returns the repetition that begins at frame index, if it is long enough to replace it
   with one line. */
struct ss_repeat ss_repeat_find(const struct ss_snapshot *snapshot,
				const struct ss_thread *thread, size_t index);

#endif
