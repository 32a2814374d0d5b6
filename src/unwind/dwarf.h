/*
 * CFI unwinding: libunwind over a view. The only file of this room that calls
 * libunwind.
 */
#ifndef SS_UNWIND_DWARF_H
#define SS_UNWIND_DWARF_H

#include "unwind/memory.h"

struct ss_dwarf; /* libunwind's address space, with its cache; of a session */

/* NULL without memory. */
struct ss_dwarf *ss_dwarf_new(void);
void ss_dwarf_free(struct ss_dwarf *dwarf);

/* Begins with a view: what was cached for another capture is dropped. The view must
   outlive the steps. */
void ss_dwarf_begin(struct ss_dwarf *dwarf, struct ss_view *view);

/* Where a walk stands: the registers of one frame. */
struct ss_dwarf_frame {
	uint64_t pc;
	uint64_t sp;
	uint64_t fp;
	bool fp_known;
};

/* Starts at registers. call: pc is a return address (look up the instruction before
   it). False: pc or sp is not known. */
bool ss_dwarf_start(struct ss_dwarf *dwarf, const struct ss_regs *regs, bool call);

enum ss_dwarf_step {
	SS_STEP_OK,
	SS_STEP_ROOT,	  /* the CFI says that this is the outermost frame */
	SS_STEP_NO_INFO,  /* there is no CFI for the pc */
	SS_STEP_BAD,	  /* CFI that cannot be interpreted */
	SS_STEP_MISSING,  /* memory that is needed was not copied: view->missing */
	SS_STEP_REGISTER, /* a register that is needed is not known */
};

/* Goes to the next outer frame. On OK *frame is that frame's. */
enum ss_dwarf_step ss_dwarf_next(struct ss_dwarf *dwarf, struct ss_dwarf_frame *frame);

/* The frame where the walk stands. */
bool ss_dwarf_get(struct ss_dwarf *dwarf, struct ss_dwarf_frame *ret);

SS_DEFINE_CLEANUP(struct ss_dwarf, ss_dwarf, ss_dwarf_free)

#endif
