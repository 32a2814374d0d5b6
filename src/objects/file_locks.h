/*
 * Who holds the file lock that a thread waits for.
 */
#ifndef SS_OBJECTS_FILE_LOCKS_H
#define SS_OBJECTS_FILE_LOCKS_H

#include "model/facts.h"
#include "target/target.h"

/* Sets the holder for threads that wait for a file lock. */
void ss_file_locks_find_owners(struct ss_facts *facts, const struct ss_target *target);

#endif
