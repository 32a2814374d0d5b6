/*
 * Unwinds the goroutines of a Go program that are parked: runtime/go/goroutines.h says where
 * each continues.
 */
#ifndef SS_UNWIND_GOROUTINES_H
#define SS_UNWIND_GOROUTINES_H

#include "unwind/walk.h"

/* Adds the goroutines of the capture to the walk's snapshot, after its threads. False
   without memory. */
bool ss_goroutines_walk(struct ss_walk *walk);

/* See ss_capture_plan_goroutines(). */
bool ss_goroutines_plan(struct ss_unwind_context *ctx, struct ss_gather_plan *ret);

#endif
