/*
 * The memory that arguments of system calls point to: taken from the copied stacks if
 * possible, otherwise read after the release.
 */
#ifndef SS_OBJECTS_ARGUMENTS_H
#define SS_OBJECTS_ARGUMENTS_H

#include "model/capture.h"
#include "target/process_memory.h"
#include "target/kept_files.h"
#include "target/target.h"

/* Sets the memory of each thread's facts, and the original call of a restarted one.
   facts->threads and capture->threads have the same order. */
void ss_arguments_read(struct ss_facts *facts, const struct ss_capture *capture,
		       const struct ss_target *target,
		       const struct ss_process_memory *memory);

/* Sets still_in_call for each thread that waits for an object and is in the same call
   as in the capture: one whose counter shows that it has not run needs no other look. counters may
   be NULL. */
void ss_arguments_check(struct ss_facts *facts, const struct ss_capture *capture,
			const struct ss_target *target,
			const struct ss_kept_files *counters);

#endif
