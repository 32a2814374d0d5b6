/*
 * The walk along one stack, frame by frame: which of the ways to a frame's caller to
 * take, and why the stack ends where it does.
 */
#ifndef SS_UNWIND_WALK_H
#define SS_UNWIND_WALK_H

#include "model/snapshot.h"
#include "unwind/cfi_step.h"
#include "unwind/dwarf.h"
#include "unwind/held.h"

/* What the session keeps for this room. */
struct ss_unwinder {
	struct ss_dwarf *dwarf;
	struct ss_rows *rows;
	struct ss_images *images;
};

struct ss_walk {
	struct ss_snapshot *snapshot; /* for its strings */
	struct ss_view view;
	struct ss_held held;
	const struct ss_unwinder *unwinder;
	size_t max_frames;
	const char *frames_reason;
	SS_VECTOR(struct ss_frame) frames; /* out: of the thread at hand */
	enum ss_end end;		   /* out */
	unsigned guesses;		   /* so far */
	unsigned inward;
	unsigned links; /* of frame pointers, in a row */
};

/* Finds the frames of a thread and why they end. False without memory. */
bool ss_walk_thread(struct ss_walk *walk, const struct ss_capture_thread *thread);

#endif
