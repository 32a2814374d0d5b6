/*
 * Which processes have something open - the other end of a pipe or of a UNIX socket, a
 * file with a lock of flock(2): found by looking at the links of all processes'
 * descriptors, for no longer than some milliseconds of CPU time.
 */
#ifndef SS_OBJECTS_HOLDERS_H
#define SS_OBJECTS_HOLDERS_H

#include "model/facts.h"
#include "target/target.h"

/* Fills in holders of those of facts->fds that are followed. */
void ss_holders_find(struct ss_facts *facts, const struct ss_target *target);

/*
 * A process that has that file open, by that name, with a lock of flock(2): named, which the
 * kernel says took it, or, as open files are inherited, another one. 0: none was found.
 * spent: CPU time in nanoseconds, of all such searches for a capture; adds to it.
 */
pid_t ss_holders_find_flock(const struct ss_target *target, const struct ss_fd_fact *file,
			    pid_t named, uint64_t *spent);

#endif
