/*
 * The mapping at one address of a process, without reading all of its maps.
 */
#ifndef SS_PROCESS_MAPPED_H
#define SS_PROCESS_MAPPED_H

#include <stddef.h>
#include <stdint.h>

struct ss_mapped {
	uint64_t start;
	uint64_t end;
	uint64_t offset; /* in the file */
	uint64_t inode;	 /* 0: of no file */
	uint64_t device; /* as ss_maps_parse() gives it */
};

/* maps_fd: /proc/PID/maps, open for reading. Returns 0 or an errno: ENOENT if nothing is
   mapped there, ESRCH if that memory is gone (the process ended, or called execve()),
   ENOTTY before Linux 6.11. */
int ss_mapped_query(int maps_fd, uint64_t address, struct ss_mapped *ret);

/* The kernel's limit for build-ids. */
enum { SS_MAPPED_BUILD_ID_MAX = 20 };

/* Stores the build-id of the file with this device and inode that is mapped at address; the
   kernel reads it. Returns its size; 0 if it has none, if another file is mapped there by now, or
   before Linux 6.11. */
size_t ss_mapped_build_id(int maps_fd, uint64_t address, uint64_t device, uint64_t inode,
			  uint8_t ret[SS_MAPPED_BUILD_ID_MAX]);

#endif
