/*
 * Connections of sockets, from the tables of the target's network namespace, and peers of
 * UNIX sockets, from sock_diag(7). Does not affect any socket.
 */
#ifndef SS_OBJECTS_SOCKETS_H
#define SS_OBJECTS_SOCKETS_H

#include "model/facts.h"
#include "target/target.h"

/* Completes the socket of each entry of facts->fds that is a socket. */
void ss_sockets_read(struct ss_facts *facts, const struct ss_target *target);

#endif
