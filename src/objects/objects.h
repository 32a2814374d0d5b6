/*
 * The objects that blocked threads refer to, read after the release within limits: memory
 * of system call arguments, file descriptors, other processes.
 */
#ifndef SS_OBJECTS_OBJECTS_H
#define SS_OBJECTS_OBJECTS_H

#include "model/capture.h"
#include "target/kept_files.h"
#include "target/process_memory.h"
#include "target/target.h"

/* Sets capture->facts. Skips unreadable data. facts stays NULL if memory is exhausted.
   previous: the previous capture of a series, or NULL. counters: how often threads were scheduled, if
   target->kept has none; or NULL. */
void ss_objects_collect(struct ss_capture *capture, const struct ss_target *target,
			const struct ss_process_memory *memory,
			const struct ss_capture *previous,
			const struct ss_kept_files *counters);

#endif
