/*
 * Which processes hold the other end of a pipe or of a UNIX socket: found by looking at
 * the links of all processes' descriptors, for no longer than a few milliseconds.
 */
#ifndef SS_OBJECTS_HOLDERS_H
#define SS_OBJECTS_HOLDERS_H

#include "model/facts.h"
#include "target/target.h"

/* Fills in holders of those of facts->fds that are followed. */
void ss_holders_find(struct ss_facts *facts, const struct ss_target *target);

#endif
