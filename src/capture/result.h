/*
 * Converts the tasks of a freeze to the threads of a capture, with a reason for
 * everything that is missing.
 */
#ifndef SS_CAPTURE_RESULT_H
#define SS_CAPTURE_RESULT_H

#include "capture/freeze.h"
#include "capture/stacks.h"
#include "data/capture.h"

/* Fills capture->process and threads, and takes ownership of the arena. Errors:
   NO_MEMORY, NO_PROCESS, INVALID (no thread passes the filter). */
struct ss_error *
ss_result_fill(struct ss_capture *capture, const struct ss_target *target,
	       struct ss_task_list *tasks, const struct ss_freeze *freeze,
	       const struct ss_capture_options *options, struct ss_arena *arena);

/* Fills only the threads; does not move the arena. Errors: NO_MEMORY. */
struct ss_error *ss_result_fill_threads(struct ss_capture *capture,
					struct ss_task_list *tasks);

/* The path of the target's executable below capture->root, in strings. NULL if
   unknown. */
const char *ss_result_executable(struct ss_capture *capture,
				 const struct ss_target *target);

/*
 * Completing a capture: threads that were read without stopping them are stopped, and their
 * registers and stacks are merged into the capture.
 */

/* The threads to complete. */
struct ss_complete_filter {
	const struct ss_capture *capture;
	const pid_t *tids; /* sorted */
	size_t count;
};

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
