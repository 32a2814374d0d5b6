/*
 * What the tables of Go's runtime tell about stacks: where functions begin, which are the outermost
 * ones, and how far the stack pointer has moved at each instruction. The latter makes CFI rows for
 * programs without CFI, which, unlike frame pointers, cover functions without a frame.
 */
#ifndef SS_UNWIND_GO_H
#define SS_UNWIND_GO_H

#include "unwind/cfi.h"
#include "unwind/walk.h"
#include "data/gather_plan.h"

/* address: ELF virtual. False: not a Go program, or its tables do not cover address. */
bool ss_go_row_make(struct ss_image *image, uint64_t address, struct ss_cfi_row *ret);

/*
 * Unwinds the goroutines of a Go program that are parked: runtime/go/goroutines.h says where
 * each continues.
 */

/* Adds the goroutines of the capture to the walk's snapshot, after its threads. False
   without memory. */
bool ss_goroutines_walk(struct ss_walk *walk);

/* See ss_capture_plan_goroutines(). */
bool ss_goroutines_plan(struct ss_unwind_context *ctx, struct ss_gather_plan *ret);

#endif
