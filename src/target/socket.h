/*
 * Options of sockets of a target, read from a duplicate of its descriptor.
 */
#ifndef SS_TARGET_SOCKET_H
#define SS_TARGET_SOCKET_H

#include <stdbool.h>

#include "target/target.h"

/* Whether this descriptor of the target is a socket with SO_RCVTIMEO; also true if
   unknown (before Linux 5.6, or without permission). */
bool ss_target_socket_has_timeout(const struct ss_target *target, int fd);

#endif
