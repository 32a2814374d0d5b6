/*
 * The address space of a process over time. If the maps have not changed, an update costs
 * a read and a comparison. Modules that remain mapped keep their objects and open files.
 */
#ifndef SS_SAMPLE_ADDRESS_SPACE_H
#define SS_SAMPLE_ADDRESS_SPACE_H

#include "data/capture.h"
#include "process/process_memory.h"
#include "process/target.h"

enum ss_address_space_change {
	SS_ADDRESS_SPACE_SAME = 0,
	/* areas were added, or areas that are not modules changed */
	SS_ADDRESS_SPACE_MORE,
	SS_ADDRESS_SPACE_CHANGED,  /* a module was unmapped or replaced */
	SS_ADDRESS_SPACE_REPLACED, /* the process runs another program */
	SS_ADDRESS_SPACE_ENDED,
};

struct ss_address_space {
	struct ss_target *target; /* borrowed */
	int maps_fd;
	int statm_fd;
	bool no_query;	     /* the kernel has no PROCMAP_QUERY */
	uint64_t version;    /* incremented with each new capture */
	uint64_t pages;	     /* mapped at the last update */
	uint64_t updated_ns; /* CLOCK_MONOTONIC of its beginning */
	uint64_t cost_ns;    /* its duration */
	struct ss_process_memory memory;
	struct ss_buffer text;
	struct ss_buffer next;
	struct ss_capture
		*capture;	   /* areas and modules; the threads belong to the user */
	struct ss_capture *before; /* the previous one, which may still be in use */
};

/* Empty until the first update. */
void ss_address_space_init(struct ss_address_space *space, struct ss_target *target);
void ss_address_space_deinit(struct ss_address_space *space);

/* Reads all maps. Errors: NO_MEMORY, SYSTEM, DENIED. */
struct ss_error *ss_address_space_update(struct ss_address_space *space,
					 enum ss_address_space_change *ret);

/* Reads all maps if the number of mapped pages has changed, using at most 1 % of the
   time, or if the last read was a second ago. Therefore check areas in use with
   ss_address_space_check(). */
struct ss_error *ss_address_space_update_if_due(struct ss_address_space *space,
						enum ss_address_space_change *ret);

/* Whether it is time for that. pages: mapped now; 0: the memory is gone. */
bool ss_address_space_is_due(const struct ss_address_space *space, uint64_t pages,
			     uint64_t now_ns);

/* Worst first. UNKNOWN: only ss_address_space_update() can tell. */
enum ss_mapping_check { SS_MAPPING_DIFFERS, SS_MAPPING_UNKNOWN, SS_MAPPING_SAME };

/* Asks the kernel whether the mapping at an address is that of the capture. For a freeze:
   opens no file. UNKNOWN: also if nothing was mapped there, or is. */
enum ss_mapping_check ss_address_space_query(struct ss_address_space *space,
					     uint64_t address);

/* The same, also for an address where nothing is mapped. */
enum ss_mapping_check ss_address_space_check(struct ss_address_space *space,
					     uint64_t address);

#endif
