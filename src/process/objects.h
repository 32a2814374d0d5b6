/*
 * The objects that blocked threads refer to, read after the release within limits: memory
 * of system call arguments, file descriptors, other processes.
 */
#ifndef SS_PROCESS_OBJECTS_H
#define SS_PROCESS_OBJECTS_H

#include <stdbool.h>

#include "data/capture.h"
#include "data/facts.h"
#include "process/target.h"
#include "process/process_memory.h"

/*
 * File descriptors of the target, limited to those that blocked threads refer to.
 */

/* Limit of descriptors read from a set (poll, select, epoll): the lowest ones. */
enum { SS_SET_SHOWN = 24 };

/* Fills facts->fds: the descriptors in the arguments of blocked threads, and those in
   their epoll sets. For sockets, sets only the protocol.
   previous: the facts of the previous capture of a series, or NULL */
void ss_descriptors_read(struct ss_facts *facts, const struct ss_target *target,
			 const struct ss_facts *previous);

/* Sets capture->facts. Skips unreadable data. facts stays NULL if memory is exhausted.
   previous: the previous capture of a series, or NULL. counters: how often threads were scheduled, if
   target->kept has none; or NULL. */
void ss_objects_collect(struct ss_capture *capture, const struct ss_target *target,
			const struct ss_process_memory *memory,
			const struct ss_capture *previous,
			const struct ss_kept_files *counters);

/*
 * Connections of sockets, from the tables of the target's network namespace; and UNIX sockets, from
 * sock_diag(7): name, state, and the other end, which is not in procfs. Does not affect any socket.
 */

/* Whether so many entries of facts->fds are UNIX sockets, or may be, that a list of all is
   faster. */
bool ss_unix_diag_prefers_list(const struct ss_facts *facts);

/* Sets the socket of each entry of facts->fds that is a UNIX socket; in a list, also of those
   whose protocol is not known. diag_fd, list_fd:
   sock_diag(7) sockets; the kernel may not support UNIX sockets there. list_fd is of no use
   afterwards, because a list of all sockets may have been requested and not read to its end;
   -1: sockets are looked up one by one. */
void ss_unix_diag_read(struct ss_facts *facts, int diag_fd, int list_fd);

/* Completes the socket of each entry of facts->fds that is a socket. */
void ss_sockets_read(struct ss_facts *facts, const struct ss_target *target);

/* Whether a read of this socket waits without a time limit (SO_RCVTIMEO), and for any
   data (SO_RCVLOWAT). False if unknown: before Linux 5.6, or without permission. */
bool ss_target_socket_waits_plainly(const struct ss_target *target, int fd);

/*
 * Finds the processes that have an object open (the other end of a pipe or UNIX socket, a
 * file with a flock(2) lock) by reading the descriptor links of all processes, within a
 * few milliseconds of CPU time.
 */

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

/* Calls visit for each descriptor of a process that has this link, until it returns false: of the
   process `first` (0: none), then of all, those first that were started shortly before this one. Adds the
   CPU time to *spent_ns, which limits all searches that use it. Returns whether all processes were
   searched. */
bool ss_holders_visit(const struct ss_target *target, const char *link, pid_t first,
		      uint64_t *spent_ns,
		      bool (*visit)(void *data, pid_t pid, const char *fd), void *data);

/* Sets the holder for threads that wait for a file lock. */
void ss_file_locks_find_owners(struct ss_facts *facts, const struct ss_target *target);

/* Sets the holder for threads that sleep in a process that maps SQLite, which looks again and again: another
   process that has locked a database that this one has open. Whether they wait for that, their stacks
   tell. */
void ss_databases_find_owners(struct ss_facts *facts, const struct ss_capture *capture,
			      const struct ss_target *target);

/*
 * Waits that only the kernel function tells in which a thread sleeps: for another process that opens the
 * other end of a FIFO, and for the server of a FUSE file system. No path is looked up, since that could
 * wait for the same server.
 */

/* Sets opens_fifo, mount and holder of threads that wait so. Call it after ss_descriptors_read(). */
void ss_wait_channels_read(struct ss_facts *facts, const struct ss_target *target);

/*
 * The processes that threads of a capture wait for: owners of a file lock or of a lock in
 * shared memory, the only holder of the other end of a pipe or UNIX socket, children.
 */

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
