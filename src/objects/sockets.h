/*
 * Which connections sockets are, from the tables of the target's network namespace, and
 * which is the other end of a UNIX socket, from sock_diag(7). No socket is touched.
 */
#ifndef SS_OBJECTS_SOCKETS_H
#define SS_OBJECTS_SOCKETS_H

#include "model/facts.h"
#include "target/target.h"

/* Fills in the rest of socket of each of facts->fds that is one. */
void ss_sockets_read(struct ss_facts *facts, const struct ss_target *target);

#endif
