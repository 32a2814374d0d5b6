/*
 * What the tables of Go's runtime tell about stacks: where functions begin, which are the outermost
 * ones, and how far the stack pointer has moved at each instruction. The latter makes CFI rows for
 * programs without CFI, which, unlike frame pointers, cover functions without a frame.
 */
#ifndef SS_UNWIND_GO_H
#define SS_UNWIND_GO_H

#include "unwind/cfi_row.h"

/* address: ELF virtual. False: not a Go program, or its tables do not cover address. */
bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret);

/* Whether a function begins at address (ELF virtual). */
bool ss_go_is_entry(struct ss_image *image, uint64_t address);

/* Whether the function at address (ELF virtual) is the outermost one of a stack: what is
   further out does not belong to it, or is nothing. */
bool ss_go_is_root(struct ss_image *image, uint64_t address);

/* Whether it is sigpanic(). The handler of a signal makes a fault look like a call of that
   function: it returns to the instruction that failed. */
bool ss_go_is_sigpanic(struct ss_image *image, uint64_t address);

#endif
