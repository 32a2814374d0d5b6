/*
 * UNIX sockets from sock_diag(7): name, state, and the other end, which is not in procfs.
 */
#ifndef SS_OBJECTS_UNIX_DIAG_H
#define SS_OBJECTS_UNIX_DIAG_H

#include "model/facts.h"

/* Sets the socket of each entry of facts->fds that is a UNIX socket. diag_fd: a
   sock_diag(7) socket; the kernel may not support UNIX sockets there. */
void ss_unix_diag_read(struct ss_facts *facts, int diag_fd);

#endif
