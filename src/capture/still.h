/*
 * Whether a thread has not run since it was captured, so that memory that only it changes is
 * still what it was.
 */
#ifndef SS_CAPTURE_STILL_H
#define SS_CAPTURE_STILL_H

#include "base/buffer.h"
#include "data/capture.h"
#include "process/process_memory.h"
#include "process/target.h"

/* For threads that wait for a CPU: some time slices. Other programs may keep all CPUs busy. */
enum { SS_STILL_WAITS = 100 };

/* Everything is borrowed. */
struct ss_still {
	const struct ss_capture *capture;
	const struct ss_target *target;
	const struct ss_process_memory *memory;
	struct ss_buffer *text; /* scratch */
	unsigned *waits_left;	/* of a millisecond, for all threads together */
};

/*
 * A thread that was not stopped: by how often the scheduler has put it on a CPU. A stop
 * changes that number, so a thread that was stopped must be blocked in the same call, with
 * the same bytes on its stack. It is waited for until it is back there.
 */
bool ss_still_check(const struct ss_still *still, const struct ss_capture_thread *thread);

#endif
