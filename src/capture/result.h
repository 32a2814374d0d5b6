/*
 * From the tasks of a freeze to the threads of a capture: plain data, with the reason
 * for whatever is missing.
 */
#ifndef SS_CAPTURE_RESULT_H
#define SS_CAPTURE_RESULT_H

#include "capture/freeze.h"
#include "capture/stacks.h"

/* Fills capture->process and threads, and takes the arena over. NO_MEMORY,
   NO_PROCESS, INVALID (no thread passes the filter). */
struct ss_error *
ss_result_fill(struct ss_capture *capture, const struct ss_target *target,
	       struct ss_task_list *tasks, const struct ss_freeze *freeze,
	       const struct ss_capture_options *options, struct ss_arena *arena);

/* The threads only; the arena stays where it is. NO_MEMORY. */
struct ss_error *ss_result_fill_threads(struct ss_capture *capture,
					struct ss_task_list *tasks);

/* What the target executes, as a process below capture->root sees it, in strings. NULL:
   not known. */
const char *ss_result_executable(struct ss_capture *capture,
				 const struct ss_target *target);

#endif
