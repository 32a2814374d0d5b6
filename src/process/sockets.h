/*
 * Connections of sockets, from the tables of the target's network namespace, and peers of
 * UNIX sockets, from sock_diag(7). Does not affect any socket.
 */
#ifndef SS_PROCESS_SOCKETS_H
#define SS_PROCESS_SOCKETS_H

#include <stdbool.h>

#include "data/facts.h"
#include "process/target.h"

/*
 * UNIX sockets from sock_diag(7): name, state, and the other end, which is not in procfs.
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

#endif
