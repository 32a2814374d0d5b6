/*
 * CFI of every kind, expressions and signal frames too: libunwind over a view. The only
 * file of this room that calls libunwind.
 */
#ifndef SS_UNWIND_DWARF_H
#define SS_UNWIND_DWARF_H

#include "unwind/step.h"

struct ss_dwarf; /* libunwind's address space, of a session */

/* NULL without memory. */
struct ss_dwarf *ss_dwarf_new(void);
void ss_dwarf_free(struct ss_dwarf *dwarf);

/* Begins with a view, which must outlive the steps. */
void ss_dwarf_begin(struct ss_dwarf *dwarf, struct ss_view *view);

/* Goes one frame out, as ss_rows_step() does; never COMPLEX. signal: pc is in the signal
   trampoline; what was interrupted may have a pc of zero, and is not the root then. */
enum ss_step ss_dwarf_step(struct ss_dwarf *dwarf, struct ss_regs *regs, bool call,
			   bool signal);

SS_DEFINE_CLEANUP(struct ss_dwarf, ss_dwarf, ss_dwarf_free)

#endif
