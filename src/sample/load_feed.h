/*
 * What the processes of a recording map to execute it, as the kernel reports it for all processes
 * at once.
 */
#ifndef SS_SAMPLE_LOAD_FEED_H
#define SS_SAMPLE_LOAD_FEED_H

#include "sample/module_loads.h"

struct ss_load_reader {
	pid_t pid;
	struct ss_module_loads *loads; /* borrowed */
};

/* Zeroed, it is closed: nothing is reported. */
struct ss_load_feed {
	struct ss_mmap_events events;
	uint64_t lost; /* of them, as of the last read */
	SS_VECTOR(struct ss_load_reader) readers;
};

/* Returns 0 or an error number, as ss_mmap_events_open(). */
int ss_load_feed_open(struct ss_load_feed *feed);
void ss_load_feed_close(struct ss_load_feed *feed);

/* What the process has mapped before is not reported, so it may have mapped anything until now.
   False: no memory. */
bool ss_load_feed_add(struct ss_load_feed *feed, pid_t pid,
		      struct ss_module_loads *loads);
void ss_load_feed_remove(struct ss_load_feed *feed, const struct ss_module_loads *loads);

/* Hands over what was mapped since the last call. False without memory. */
bool ss_load_feed_read(struct ss_load_feed *feed);

#endif
