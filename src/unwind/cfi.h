/*
 * Unwinding by CFI of ELF files.
 */
#ifndef SS_UNWIND_CFI_H
#define SS_UNWIND_CFI_H

#include "unwind/cfi_row.h"
#include "unwind/unwinder.h"

/* Finds the row for a frame. False: there is none that can be expressed. */
bool ss_cfi_find_row(struct ss_unwind_context *ctx, const struct ss_unwind_frame *frame,
		     struct ss_cfi_row *ret);

/* The start of the function of a frame, or 0: not known. */
uint64_t ss_cfi_find_function(struct ss_unwind_context *ctx,
			      const struct ss_unwind_frame *frame);

/* Whether a function with CFI starts at pc, and the byte before pc has no CFI. */
bool ss_cfi_starts_at(struct ss_unwind_context *ctx, uint64_t pc);

#endif
