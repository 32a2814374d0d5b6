/*
 * Finds the processes that have an object open (the other end of a pipe or UNIX socket, a
 * file with a flock(2) lock) by reading the descriptor links of all processes, within a
 * few milliseconds of CPU time.
 */
#ifndef SS_PROCESS_HOLDERS_H
#define SS_PROCESS_HOLDERS_H

#include "data/facts.h"
#include "process/target.h"

/*
 * Other processes that a thread waits for: its tracer, its children. Reads only names and states, which are world-readable.
 */

/* Reads name, state and inner pid of a process. False: there is no such process. */
bool ss_process_fact_read(struct ss_facts *facts, const struct ss_target *target,
			  pid_t pid, struct ss_process_fact *ret);

/* Sets facts->children. */
void ss_children_find(struct ss_facts *facts, const struct ss_target *target);

/* Sets the tracer of traced threads, facts->children if a thread waits for a
   child, and who changed a System V semaphore last. */
void ss_processes_find(struct ss_facts *facts, const struct ss_target *target);

/*
 * In a series: sets the holders of those pipes and sockets in facts->fds with resolve_peers that
 * have the same other end as in the previous capture, if all processes that had it open then
 * still have it. Another process that has got it since is not searched for, so there may be other
 * holders of a pipe (holders_kept).
 */
void ss_holders_confirm(struct ss_facts *facts, const struct ss_target *target,
			const struct ss_facts *previous);

/* Sets holders of those facts->fds with resolve_peers, unless they are known. A UNIX socket has
   one holder as a rule: if one other than the process itself is known for each, the search ends. */
void ss_holders_find(struct ss_facts *facts, const struct ss_target *target);

/* Searches for those with holders_kept, too: what follows is to be proven. */
void ss_holders_find_again(struct ss_facts *facts, const struct ss_target *target);

/* Searches all processes for those of which one holder is known, and perhaps not all: a deadlock depends
   on it. It ends at end_ns of the thread's CPU time; what was not searched by then stays incomplete. */
void ss_holders_complete(struct ss_facts *facts, const struct ss_target *target,
			 uint64_t end_ns);

/* Calls visit for each descriptor of a process that has this link, until it returns false. Returns
   whether all processes were searched. */
bool ss_holders_visit(const struct ss_target *target, const char *link,
		      bool (*visit)(void *data, pid_t pid, const char *fd), void *data);

/*
 * Who holds the file lock that a thread waits for.
 */

/* Sets the holder for threads that wait for a file lock. */
void ss_file_locks_find_owners(struct ss_facts *facts, const struct ss_target *target);

#endif
