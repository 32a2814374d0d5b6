/*
 * The frame pointer of a thread that was not stopped: the kernel does not tell it, and
 * functions that keep their frame by it cannot be left without. Mostly the function's first
 * instructions say how far above the stack pointer it is.
 */
#ifndef SS_UNWIND_GUESS_H
#define SS_UNWIND_GUESS_H

#include "unwind/cfi_step.h"

/*
 * Sets the frame pointer in regs to where the function's begin says; else to the first place
 * above the stack pointer with a return address behind a call of just this function. From
 * there some frames must follow, each behind a call. call: pc is a return address. False:
 * there is no such place, regs are untouched.
 */
bool ss_guess_frame_pointer(struct ss_rows *rows, struct ss_view *view,
			    struct ss_regs *regs, bool call);

#endif
