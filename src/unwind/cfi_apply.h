/*
 * Steps to the caller of a frame, by a row of a CFI table.
 */
#ifndef SS_UNWIND_CFI_APPLY_H
#define SS_UNWIND_CFI_APPLY_H

#include "unwind/cfi_row.h"
#include "unwind/unwinder.h"

/* A register that was saved but cannot be read is not known in the caller's frame. */
enum ss_step ss_cfi_row_apply(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame);

#endif
