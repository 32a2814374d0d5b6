/*
 * What blocked threads refer to, read after the release: the memory that arguments of
 * their system calls point to, and what their file descriptors are. Only objects of
 * threads that wait are looked at; everything has a cap.
 */
#ifndef SS_OBJECTS_OBJECTS_H
#define SS_OBJECTS_OBJECTS_H

#include "model/capture.h"
#include "target/memory.h"
#include "target/target.h"

/* Fills in capture->facts. What cannot be had is left out: without memory facts stays
   NULL. */
void ss_objects_look(struct ss_capture *capture, const struct ss_target *target,
		     const struct ss_memory *memory);

#endif
