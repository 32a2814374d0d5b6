/*
 * The memory that arguments of system calls point to: out of the copied stacks, where it
 * mostly lies, or read now.
 */
#ifndef SS_OBJECTS_ARGUMENTS_H
#define SS_OBJECTS_ARGUMENTS_H

#include "model/capture.h"
#include "target/memory.h"
#include "target/target.h"

/* Fills in memory of each thread's facts, and which call it is that was restarted.
   facts->threads and capture->threads are in one order. */
void ss_arguments_read(struct ss_facts *facts, const struct ss_capture *capture,
		       const struct ss_target *target, const struct ss_memory *memory);

/* Sets stayed of each thread that waits for an object: it is in the same call now as it
   was in the capture. */
void ss_arguments_check(struct ss_facts *facts, const struct ss_capture *capture,
			const struct ss_target *target);

#endif
