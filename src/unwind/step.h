/*
 * What all ways to go from a frame to its caller have in common. Each takes the
 * registers of a frame and turns them into the caller's.
 */
#ifndef SS_UNWIND_STEP_H
#define SS_UNWIND_STEP_H

#include "unwind/memory.h"

enum ss_step {
	SS_STEP_OK,
	SS_STEP_ROOT,	  /* the CFI says that this is the outermost frame */
	SS_STEP_NO_INFO,  /* there is no CFI for the pc */
	SS_STEP_BAD,	  /* CFI that cannot be interpreted */
	SS_STEP_COMPLEX,  /* CFI that only libunwind interprets */
	SS_STEP_MISSING,  /* memory that is needed was not copied: view->missing */
	SS_STEP_REGISTER, /* a register that is needed is not known */
};

#endif
