/*
 * File descriptors in snapshots.
 */
#ifndef SS_DIAGNOSE_DESCRIPTOR_H
#define SS_DIAGNOSE_DESCRIPTOR_H

#include "diagnose/diagnosis.h"

/* Fills snapshot->descriptors from the captured facts. False without memory. */
bool ss_descriptors_init(struct ss_snapshot *snapshot);

/* The descriptor with that number, or NULL. */
const struct ss_descriptor *ss_descriptor_find(const struct ss_snapshot *snapshot,
					       int fd);

/* Sets fd and descriptor of the wait. The descriptor is known only if the thread was
   still in its call when descriptors were looked up. */
void ss_descriptor_fill(struct ss_diagnosis *d, int fd);

/* Converts a process of the facts to one of a snapshot. */
struct ss_related_process ss_related_process(const struct ss_facts *facts,
					     const struct ss_process_fact *process);

#endif
