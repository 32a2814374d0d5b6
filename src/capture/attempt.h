/*
 * One attempt to capture a target: open files, freeze, copy, and check that areas and
 * modules were the same before and after the freeze.
 */
#ifndef SS_CAPTURE_ATTEMPT_H
#define SS_CAPTURE_ATTEMPT_H

#include "capture/freeze.h"
#include "capture/observe.h"
#include "capture/stacks.h"
#include "capture/tasks.h"
#include "data/gather.h"
#include "process/process_memory.h"

/*
 * Live unwinding: libunwind reads the memory of a stopped thread. This keeps the target
 * stopped for a long time and parses its unwind tables with the caller's privileges. It
 * serves as an oracle in tests and for stacks larger than the copy limit.
 */

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

/* State of one attempt. */
struct ss_attempt {
	struct ss_target *target;
	const struct ss_capture_options *options;
	const struct ss_capture *completed; /* the capture to complete, or NULL */
	struct ss_capture *capture;
	struct ss_task_list tasks;
	struct ss_kept_files *counters; /* of the tasks, see ss_tasks_close_files() */
	struct ss_arena arena;
	struct ss_freeze freeze;
	struct ss_look look;
	struct ss_placement placement;
	struct ss_process_memory memory;
	struct ss_live *live;
	struct ss_gather *gather;    /* of options->plan, or NULL */
	struct ss_page_cache *pages; /* for the gather; NULL: it reads memory again */
	struct ss_buffer maps;
	struct ss_buffer maps_after;
	int maps_fd;
	bool copied;	 /* once, and then: */
	size_t moved;	 /* how many threads ran meanwhile that were not stopped */
	size_t fragile;	 /* and for how many of them no others are stopped again */
	bool areas_kept; /* they are those of the previous capture */
	bool maps_in_freeze;
};

/* The capture whose modules are shared, or NULL. */
const struct ss_capture *ss_attempt_sharing(const struct ss_attempt *attempt);

/* Reads the threads, and copies all of them if none has to be stopped. *ret_stop: one has to.
   Errors: those of ss_capture_take(). */
struct ss_error *ss_attempt_copy(struct ss_attempt *a, bool *ret_stop);

/* Stops threads, copies, and releases them. Called by a thread that ends afterwards (see
   capture.c): threads that stop later are released then. Errors: those of ss_capture_take(). */
struct ss_error *ss_attempt_stop(struct ss_attempt *a);

/* Reads the areas again, as they are after the freeze: when a capture is completed, those of
   that capture are taken. */
struct ss_error *ss_attempt_read_areas(struct ss_attempt *a);

/* Reads what needs no stop. On success a->capture is the capture, unless *again is set:
   then another attempt is needed. Errors: those of ss_capture_take(). */
struct ss_error *ss_attempt_finish(struct ss_attempt *a, bool *again);
void ss_attempt_deinit(struct ss_attempt *a);

#endif
