/*
 * What file descriptors of the target are: only those that blocked threads refer to.
 */
#ifndef SS_OBJECTS_DESCRIPTORS_H
#define SS_OBJECTS_DESCRIPTORS_H

#include "model/facts.h"
#include "target/target.h"

/* Of what a set (poll, select, epoll) has, so many are looked at, the lowest ones. */
enum { SS_SET_SHOWN = 24 };

/* Fills in facts->fds: the descriptors in the arguments of blocked threads, and what
   their epolls watch. Sockets are told apart by protocol only. */
void ss_descriptors_read(struct ss_facts *facts, const struct ss_target *target);

#endif
