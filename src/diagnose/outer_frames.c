#include "diagnose/outer_frames.h"

#include <string.h>

enum { FRAMES_MAX = 4096 }; /* that are compared */

/* Functions of a runtime's language may have the same name in several files. */
static bool is_same_file(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->kind == SS_FRAME_NATIVE || a->file == b->file)
		return true;
	return a->file && b->file && strcmp(a->file, b->file) == 0;
}

const struct ss_frame *ss_outer_frame(const struct ss_snapshot *snapshot,
				      const struct ss_thread *thread, size_t from_outside)
{
	return ss_snapshot_frame(snapshot, thread,
				 thread->frame_count - 1 - from_outside);
}

bool ss_frame_is_same_function(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->kind != b->kind || !is_same_file(a, b))
		return false;
	if (a->symbol && b->symbol)
		return a->symbol == b->symbol || strcmp(a->symbol, b->symbol) == 0;
	return a->symbol == b->symbol && a->pc == b->pc;
}

size_t ss_outer_frames_common(const struct ss_snapshot *a, const struct ss_thread *x,
			      const struct ss_snapshot *b, const struct ss_thread *y)
{
	size_t count = SS_MIN(x->frame_count, y->frame_count);
	size_t i = 0;

	for (count = SS_MIN(count, (size_t)FRAMES_MAX); i < count; i++) {
		if (!ss_frame_is_same_function(ss_outer_frame(a, x, i),
					       ss_outer_frame(b, y, i)))
			break;
	}
	return i;
}
