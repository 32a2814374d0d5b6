#include "output/repeat.h"

#include <string.h>

enum {
	PERIOD_MAX = 24, /* enough for recursion through the loop of an interpreter */
	TIMES_MIN = 3,	 /* two may be a coincidence */
	HIDDEN_MIN = 6,	 /* with fewer, the gap in the numbers is not worth it */
};

static bool same_frame(const struct ss_frame *a, const struct ss_frame *b)
{
	if (a->pc != b->pc || a->inlined != b->inlined || a->module != b->module ||
	    a->signal_frame != b->signal_frame || a->kind != b->kind ||
	    (a->kind != SS_FRAME_NATIVE && (a->file != b->file || a->line != b->line)))
		return false;
	return a->symbol == b->symbol ||
	       (a->symbol && b->symbol && strcmp(a->symbol, b->symbol) == 0);
}

/* Returns how many frames, from index on, equal the frame that is period frames further
   out. */
static size_t equal_run(const struct ss_snapshot *snapshot,
			const struct ss_thread *thread, size_t index, size_t period)
{
	size_t i = index;

	while (i + period < thread->frame_count &&
	       same_frame(ss_snapshot_frame(snapshot, thread, i),
			  ss_snapshot_frame(snapshot, thread, i + period)))
		i++;
	return i - index;
}

struct ss_repeat ss_repeat_find(const struct ss_snapshot *snapshot,
				const struct ss_thread *thread, size_t index)
{
	for (size_t period = 1; period <= PERIOD_MAX; period++) {
		size_t hidden = equal_run(snapshot, thread, index, period) / period;
		if (hidden + 1 >= TIMES_MIN && hidden * period >= HIDDEN_MIN)
			return (struct ss_repeat){ period, hidden + 1 };
	}
	return (struct ss_repeat){};
}
