/*
 * File descriptors of the target, limited to those that blocked threads refer to.
 */
#ifndef SS_OBJECTS_DESCRIPTORS_H
#define SS_OBJECTS_DESCRIPTORS_H

#include "model/facts.h"
#include "target/target.h"

/* Limit of descriptors read from a set (poll, select, epoll): the lowest ones. */
enum { SS_SET_SHOWN = 24 };

/* Fills facts->fds: the descriptors in the arguments of blocked threads, and those in
   their epoll sets. For sockets, sets only the protocol.
   previous: the facts of the previous capture of a series, or NULL */
void ss_descriptors_read(struct ss_facts *facts, const struct ss_target *target,
			 const struct ss_facts *previous);

#endif
