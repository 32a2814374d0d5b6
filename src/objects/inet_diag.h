/*
 * TCP sockets as sock_diag(7) lists them: the same as /proc/net/tcp has, which takes the
 * kernel twenty times as long to write.
 */
#ifndef SS_OBJECTS_INET_DIAG_H
#define SS_OBJECTS_INET_DIAG_H

#include <stdbool.h>

#include "proc/net.h"

typedef void ss_inet_diag_visitor(void *data, const struct ss_net_inet *socket);

/* Visits each TCP socket of a family (AF_INET, AF_INET6) in the network namespace of
   diag_fd, a socket of sock_diag(7). False: it could not be asked for all of them. */
bool ss_inet_diag_list(int diag_fd, int family, ss_inet_diag_visitor *visit, void *data);

#endif
