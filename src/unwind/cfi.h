/*
 * CFI rows of ELF files. They are kept between captures, because they depend on files
 * only and not on addresses.
 */
#ifndef SS_UNWIND_CFI_H
#define SS_UNWIND_CFI_H

#include "unwind/cfi_row.h"
#include "unwind/unwinder.h"

/* NULL without memory. */
struct ss_cfi_rows *ss_cfi_rows_new(void);
void ss_cfi_rows_free(struct ss_cfi_rows *rows);

/* Steps to the caller of frame, using a row. A register that was saved but cannot be
   read is not known in the caller's frame. */
enum ss_step ss_cfi_row_apply(const struct ss_cfi_row *row, struct ss_unwind_context *ctx,
			      struct ss_unwind_frame *frame);

/* Whether a function with CFI starts at pc, and the byte before pc has no CFI. */
bool ss_cfi_starts_at(struct ss_unwind_context *ctx, uint64_t pc);

#endif
