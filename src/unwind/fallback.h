/*
 * Where there is no CFI: a call through a bad pointer, frame pointers, and last a
 * plausible return address on the stack.
 */
#ifndef SS_UNWIND_FALLBACK_H
#define SS_UNWIND_FALLBACK_H

#include "unwind/dwarf.h"

/*
 * Finds the caller of frame. innermost: its pc is not a return address. True: *ret is
 * the caller and *source how it was found. False: *end says why the stack ends (ROOT:
 * the frame pointers say so).
 */
bool ss_fallback_step(struct ss_view *view, const struct ss_dwarf_frame *frame,
		      bool innermost, struct ss_dwarf_frame *ret,
		      enum ss_frame_source *source, enum ss_end *end);

#endif
