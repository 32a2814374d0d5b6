/*
 * The processes that threads of a capture wait for: owners of a file lock or of a lock in
 * shared memory, the only holder of the other end of a pipe or UNIX socket, children.
 */
#ifndef SS_PROCESS_PEERS_H
#define SS_PROCESS_PEERS_H

#include "data/capture.h"
#include "process/target.h"

enum { SS_PEERS_MAX = 12 }; /* limit of other processes */

struct ss_peers {
	pid_t pids[SS_PEERS_MAX + 1]; /* the first is the process of the capture */
	size_t count;
	bool has_cycle; /* a wait leads back to a process in the list */
};

/*
 * Whether threads of this process seem to form a cycle that is not proven: their lock
 * words were not read in one freeze round (see struct ss_lock_copy), and they have run
 * since. This heuristic takes the words at the usual offsets of owners and may be wrong.
 */
bool ss_peers_have_unproven_cycle(const struct ss_capture *capture);

/* Adds the processes for which threads of this capture wait, and notes them in its facts:
   it must not be shared yet. */
void ss_peers_find(struct ss_peers *peers, struct ss_capture *capture,
		   const struct ss_target *target);

#endif
