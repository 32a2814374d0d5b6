/*
 * Steps by rows of CFI tables, which are kept between captures: they belong to files,
 * not to addresses.
 */
#ifndef SS_UNWIND_CFI_STEP_H
#define SS_UNWIND_CFI_STEP_H

#include "unwind/step.h"

struct ss_rows;

/* NULL without memory. */
struct ss_rows *ss_rows_new(void);
void ss_rows_free(struct ss_rows *rows);

/*
 * Goes one frame out. call: pc is a return address. On OK regs are the caller's: those
 * that were saved and could not be read are not known any more. On anything else regs
 * are untouched.
 */
enum ss_step ss_rows_step(struct ss_rows *rows, struct ss_view *view,
			  struct ss_regs *regs, bool call);

/* Whether pc is where a function with CFI begins, and none is before it. */
bool ss_rows_begins_at(struct ss_rows *rows, struct ss_view *view, uint64_t pc);

#endif
