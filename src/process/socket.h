/*
 * Options of sockets of a target, read from a duplicate of its descriptor.
 */
#ifndef SS_PROCESS_SOCKET_H
#define SS_PROCESS_SOCKET_H

#include <stdbool.h>

#include "process/target.h"

/* Whether a read of this socket waits without a time limit (SO_RCVTIMEO), and for any
   data (SO_RCVLOWAT). False if unknown: before Linux 5.6, or without permission. */
bool ss_target_socket_waits_plainly(const struct ss_target *target, int fd);

#endif
