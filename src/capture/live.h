/*
 * Live unwinding: libunwind reads the memory of a stopped thread. This keeps the target
 * stopped for a long time and parses its unwind tables with the caller's privileges. It
 * serves as an oracle in tests and for stacks larger than the copy limit.
 */
#ifndef SS_CAPTURE_LIVE_H
#define SS_CAPTURE_LIVE_H

#include "capture/tasks.h"
#include "process/process_memory.h"

struct ss_live;

/* NULL if memory is exhausted. Finds the unwind tables of the modules of capture in
   memory. To be called before the freeze: such reads may wait for a file system. */
struct ss_live *ss_live_new(const struct ss_capture *capture,
			    const struct ss_process_memory *memory);
void ss_live_free(struct ss_live *live);

/* Unwinds a stopped thread into task->live, at most max_frames (0: no limit), and for a
   part of the time until deadline_ns. Opens no file, and reads only pages that are in
   memory. */
void ss_live_unwind(struct ss_live *live, struct ss_tracee *task, unsigned max_frames,
		    uint64_t deadline_ns);

SS_DEFINE_CLEANUP(struct ss_live, ss_live, ss_live_free)

#endif
