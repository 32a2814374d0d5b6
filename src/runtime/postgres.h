/*
 * Which session of PostgreSQL holds the lock that a backend waits for: the shared memory of the
 * server has it. Relations, rows (by transaction), advisory locks; not lightweight locks.
 */
#ifndef SS_RUNTIME_POSTGRES_H
#define SS_RUNTIME_POSTGRES_H

#include "runtime/runtime.h"

struct ss_postgres_lock {
	uint64_t address; /* of its LOCK */
	pid_t holder;	  /* the first session that has to release it */
};

/* The same for a session with that pid and PGPROC, in that shared memory. */
bool ss_postgres_read_lock(const struct ss_memory *memory, uint64_t proc, pid_t pid,
			   const struct ss_area *shared, struct ss_postgres_lock *ret);

/* False: the process is no backend that waits for a lock, or the holder is not known. */
bool ss_postgres_find_lock(const struct ss_runtime_process *process,
			   struct ss_postgres_lock *ret);

#endif
