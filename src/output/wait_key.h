/*
 * Keys of waits: threads that wait for the same thing have the same key, on any host, and so
 * have both ends of a connection or pipe.
 */
#ifndef SS_OUTPUT_WAIT_KEY_H
#define SS_OUTPUT_WAIT_KEY_H

#include <sys/types.h>

#include "stacksnap.h"

/* Returns the key of a wait of process pid, to be freed; NULL: it has none, or no memory.
   boot_id identifies the running system. */
char *ss_wait_key_new(const struct ss_wait *wait, pid_t pid, const char *boot_id);

/* The key of a descriptor, likewise. */
char *ss_wait_key_new_descriptor(const struct ss_descriptor *descriptor,
				 const char *boot_id);

#endif
