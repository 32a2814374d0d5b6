/*
 * Other processes that a thread waits for: its tracer, its children, who holds a file
 * lock. Names and states only, which anybody may read.
 */
#ifndef SS_OBJECTS_PROCESSES_H
#define SS_OBJECTS_PROCESSES_H

#include "model/facts.h"
#include "target/target.h"

/* Reads name, state and inner id of a process by its pid. False: there is none. */
bool ss_processes_read(struct ss_facts *facts, pid_t pid, struct ss_text *text,
		       struct ss_process_fact *ret);

/* Fills in tracer of the threads that are held by one, and facts->children where a
   thread waits for a child. */
void ss_processes_follow(struct ss_facts *facts, const struct ss_target *target);

/* Fills in holder of the threads that wait for a file lock. */
void ss_processes_follow_locks(struct ss_facts *facts, const struct ss_target *target);

#endif
