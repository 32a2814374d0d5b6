/*
 * Unwinding by CFI of ELF files.
 */
#ifndef SS_UNWIND_CFI_H
#define SS_UNWIND_CFI_H

#include "unwind/unwinder.h"

/* Whether a function with CFI starts at pc, and the byte before pc has no CFI. */
bool ss_cfi_starts_at(struct ss_unwind_context *ctx, uint64_t pc);

#endif
