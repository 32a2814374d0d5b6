/*
 * UNIX sockets as sock_diag(7) tells of them: name, state, and the other end, which no
 * file of procfs has.
 */
#ifndef SS_OBJECTS_UNIX_DIAG_H
#define SS_OBJECTS_UNIX_DIAG_H

#include "model/facts.h"

/* Fills in socket of each of facts->fds that is a UNIX one, as far as the kernel
   answers through diag_fd, a socket of sock_diag(7): it may have no such service. */
void ss_unix_diag_read(struct ss_facts *facts, int diag_fd);

#endif
