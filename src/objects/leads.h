/*
 * To which other processes the waits of a capture lead: those that hold a file lock, the
 * only other end of a pipe or UNIX socket, or a lock in shared memory, or are the only
 * child.
 */
#ifndef SS_OBJECTS_LEADS_H
#define SS_OBJECTS_LEADS_H

#include "model/capture.h"
#include "target/target.h"

enum { SS_LEADS_MAX = 4 }; /* other processes that are followed */

struct ss_leads {
	pid_t pids[SS_LEADS_MAX + 1]; /* the first one is that of the capture itself */
	size_t count;
	bool closed; /* one led back to a process that was in the list already */
};

/*
 * Whether threads of this process seem to wait for each other in a circle, and were
 * neither all looked at in one moment (see struct ss_lock_copy) nor stood still later, so
 * that the circle proves nothing yet. By what lies where locks have their owners: it may
 * be a mistake.
 */
bool ss_leads_are_torn(const struct ss_capture *capture);

/* Adds those to which threads of this capture wait. */
void ss_leads_find(struct ss_leads *leads, const struct ss_capture *capture,
		   const struct ss_target *target);

#endif
