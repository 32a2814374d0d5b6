/*
 * Other processes that a thread waits for: its tracer, its children. Reads only names and states, which are world-readable.
 */
#ifndef SS_OBJECTS_PROCESSES_H
#define SS_OBJECTS_PROCESSES_H

#include "model/facts.h"
#include "target/target.h"

/* Reads name, state and inner pid of a process. Returns false if there is no such
   process. */
bool ss_processes_read(struct ss_facts *facts, const struct ss_target *target, pid_t pid,
		       struct ss_buffer *text, struct ss_process_fact *ret);

/* Sets the tracer of traced threads, and facts->children if a thread waits for a
   child. */
void ss_processes_find(struct ss_facts *facts, const struct ss_target *target);

#endif
