/*
 * Converts the tasks of a freeze to the threads of a capture, with a reason for
 * everything that is missing.
 */
#ifndef SS_CAPTURE_RESULT_H
#define SS_CAPTURE_RESULT_H

#include "capture/freeze.h"
#include "capture/stacks.h"

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

#endif
