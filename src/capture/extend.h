/*
 * Copies more of stacks, after the capture and without stopping a thread, if unwinding led
 * beyond what was copied.
 */
#ifndef SS_CAPTURE_EXTEND_H
#define SS_CAPTURE_EXTEND_H

#include "data/capture.h"
#include "process/target.h"
#include "data/gather_plan.h"
#include "data/pipeline.h"

/* See ss_capture_extend(). */
struct ss_error *ss_extend_stacks(struct ss_capture *capture,
				  const struct ss_target *target,
				  const struct ss_capture_options *options,
				  const struct ss_stack_request *requests, size_t count,
				  size_t *ret);

/* See ss_capture_gather(). */
struct ss_error *ss_extend_by_plan(struct ss_capture *capture,
				   const struct ss_target *target,
				   const struct ss_gather_plan *plan);

#endif
