/*
 * One attempt to capture a target: opening what is needed, the freeze, the copies, and
 * whether its areas and modules were the same before and after. To be made in a thread of
 * its own, see capture.c.
 */
#ifndef SS_CAPTURE_ATTEMPT_H
#define SS_CAPTURE_ATTEMPT_H

#include "capture/freeze.h"
#include "capture/live.h"
#include "capture/placement.h"
#include "capture/stacks.h"

/* All that one attempt needs. */
struct ss_attempt {
	struct ss_target *target;
	const struct ss_capture_options *options;
	struct ss_capture *capture;
	struct ss_task_list tasks;
	struct ss_arena arena;
	struct ss_freeze freeze;
	struct ss_placement placement;
	struct ss_memory memory;
	struct ss_live *live;
	struct ss_text maps;
	struct ss_text maps_after;
	int maps_fd;
	bool maps_in_freeze;
};

/* Captures once; the capture is then in a->capture, unless *again says that another
   attempt has to be made. Errors: those of ss_capture_take(). */
struct ss_error *ss_attempt_make(struct ss_attempt *a, bool *again);
void ss_attempt_deinit(struct ss_attempt *a);

#endif
