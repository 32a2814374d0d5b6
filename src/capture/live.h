/*
 * Live unwinding: libunwind-ptrace reads a stopped thread itself, while it stands
 * still. Slow for the target; the oracle of the tests, and the way to stacks that are
 * larger than what is copied. The only file of capture/ that knows libunwind.
 */
#ifndef SS_CAPTURE_LIVE_H
#define SS_CAPTURE_LIVE_H

#include "capture/tasks.h"
#include "target/memory.h"

struct ss_live;

/* NULL without memory. capture's areas say where the vDSO is. */
struct ss_live *ss_live_new(const struct ss_capture *capture,
			    const struct ss_memory *memory);
void ss_live_free(struct ss_live *live);

/* Unwinds a stopped task of ours into task->live, max_frames at most (0: no limit). */
void ss_live_unwind(struct ss_live *live, struct ss_task *task, unsigned max_frames);

SS_DEFINE_CLEANUP(struct ss_live, ss_live, ss_live_free)

#endif
