/*
 * The memory of a capture: the stacks that were copied, the bytes around futexes, and
 * what a gather plan asked for. It does not include mapped files.
 */
#ifndef SS_MODEL_CAPTURE_MEMORY_H
#define SS_MODEL_CAPTURE_MEMORY_H

#include "model/capture.h"
#include "model/memory.h"

struct ss_capture_memory {
	struct ss_memory memory; /* first: see model/memory.h */
	const struct ss_capture *capture;
	const struct ss_capture_thread *thread; /* NULL: stacks of all threads */
};

/*
 * Memory of a capture as seen by one thread: its own stacks and lock, and gathered
 * blocks. With thread NULL, the stacks and locks of all threads, which a read searches
 * one by one, and gathered blocks. Both must outlive the memory.
 */
void ss_capture_memory_init(struct ss_capture_memory *memory,
			    const struct ss_capture *capture,
			    const struct ss_capture_thread *thread);

/* Whether a thread's stack or lock, or what was gathered, was copied from a range. */
bool ss_capture_has_copy(const struct ss_capture *capture, uint64_t start, size_t size);

#endif
