/*
 * Where there is no CFI: a call through a bad pointer, frame pointers, and last a
 * plausible return address on the stack.
 */
#ifndef SS_UNWIND_FALLBACK_H
#define SS_UNWIND_FALLBACK_H

#include "unwind/step.h"

/*
 * Goes one frame out. innermost: pc is not a return address. *links: how many
 * frame pointers in a row led to another one, for the next call; 0 after anything else.
 * True: regs are the caller's and *source says how that was found. False: *end says why
 * the stack ends (ROOT: the frame pointers say so), and regs are untouched.
 */
bool ss_fallback_step(struct ss_view *view, struct ss_regs *regs, bool innermost,
		      unsigned *links, enum ss_frame_source *source, enum ss_end *end);

/* Whether address is in code, behind a call. */
bool ss_fallback_is_return_address(struct ss_view *view, uint64_t address);

#endif
