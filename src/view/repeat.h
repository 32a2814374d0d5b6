/*
 * Deep recursion: finds a short sequence of frames that follows itself many times.
 */
#ifndef SS_VIEW_REPEAT_H
#define SS_VIEW_REPEAT_H

#include <stddef.h>

#include "stacksnap.h"

struct ss_repeat {
	size_t period; /* frames in the sequence */
	size_t times;  /* how often it is there, one after the other; 0: no repeat */
};

/* The repeat that begins at frame number index, if it is long enough to be worth
   a line that replaces it. */
struct ss_repeat ss_repeat_find(const struct ss_snapshot *snapshot,
				const struct ss_thread *thread, size_t index);

#endif
