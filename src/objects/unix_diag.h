/*
 * UNIX sockets as sock_diag(7) tells of them: name, state, and the other end, which no
 * file of procfs has.
 */
#ifndef SS_OBJECTS_UNIX_DIAG_H
#define SS_OBJECTS_UNIX_DIAG_H

#include "model/facts.h"
#include "target/target.h"

/* Fills in socket of each of facts->fds that is a UNIX one, as far as the kernel
   answers: it may have no such service, and another network namespace may be closed
   to us. */
void ss_unix_diag_read(struct ss_facts *facts, const struct ss_target *target);

#endif
