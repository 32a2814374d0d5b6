/*
 * What is mapped at one address of a process, without reading all of its maps.
 */
#ifndef SS_TARGET_MAPPED_H
#define SS_TARGET_MAPPED_H

#include <stdint.h>

struct ss_mapped {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t inode;	 /* 0: of no file */
	uint64_t device; /* as ss_maps_parse() gives it */
};

/* maps_fd: /proc/PID/maps, open for reading. 0, or errno: ENOENT where nothing is mapped,
   ESRCH when that memory is gone (the end, or an exec), ENOTTY before Linux 6.11. */
int ss_mapped_query(int maps_fd, uint64_t address, struct ss_mapped *ret);

#endif
