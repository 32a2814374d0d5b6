/*
 * TCP sockets from sock_diag(7), which is twenty times as fast as /proc/net/tcp and has
 * the same contents.
 */
#ifndef SS_OBJECTS_INET_DIAG_H
#define SS_OBJECTS_INET_DIAG_H

#include <stdbool.h>

#include "proc/net.h"

typedef void ss_inet_diag_visitor(void *data, const struct ss_net_inet *socket);

/* Visits each TCP socket of a family (AF_INET, AF_INET6) in the network namespace of
   diag_fd, a sock_diag(7) socket. Returns false if the list is incomplete. */
bool ss_inet_diag_list(int diag_fd, int family, ss_inet_diag_visitor *visit, void *data);

#endif
