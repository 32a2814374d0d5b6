/*
 * Waits for a file system: for another process that opens the other end of a FIFO, and for the server
 * of a FUSE file system. The name of the kernel function in which a thread sleeps tells them apart;
 * no path is looked up, since that could wait for the same server.
 */
#ifndef SS_PROCESS_FILE_SYSTEMS_H
#define SS_PROCESS_FILE_SYSTEMS_H

#include "data/capture.h"
#include "process/target.h"

/* Sets opens_fifo, mount and holder of threads that wait so. Call it after ss_descriptors_read(). */
void ss_file_systems_find(struct ss_facts *facts, const struct ss_target *target);

/* Sets the holder for threads that sleep in a process that maps SQLite, which looks again and again: another
   process that has locked a database that this one has open. Whether they wait for that, their stacks
   tell. */
void ss_databases_find_owners(struct ss_facts *facts, const struct ss_capture *capture,
			      const struct ss_target *target);

#endif
