/*
 * The row of registers for an address in a Go program without CFI: its runtime knows how
 * far the stack pointer has moved at each instruction. Functions without a frame are left
 * right by that, which frame pointers are blind to.
 */
#ifndef SS_UNWIND_GO_ROW_H
#define SS_UNWIND_GO_ROW_H

#include "unwind/cfi_row.h"

/* address: ELF virtual. False: the image is not of Go, or nothing is known there. */
bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret);

#endif
