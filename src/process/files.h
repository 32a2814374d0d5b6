/*
 * The bytes of modules: their files, opened so that a hostile target cannot redirect us
 * to other files; or target memory if there is no file. Runs after the release, in a child
 * with our privileges that is abandoned if it blocks (process/opener.h): it opens and
 * copies, and parses nothing (see ss_module_identify()). Files of a local disk need no child.
 */
#ifndef SS_PROCESS_FILES_H
#define SS_PROCESS_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "data/capture.h"
#include "process/process_memory.h"
#include "process/target.h"

/* Sets fd or bytes of the modules that copied stacks, registers or frames refer to, and
   the build-id if the kernel provides it. pub.problem says why there is no file.
   maps_fd: /proc/PID/maps of the captured memory, to check whether the process still
   has it. previous: the previous capture of a series, or NULL. False: there was nothing to
   open. */
bool ss_files_open(struct ss_capture *capture, const struct ss_capture *previous,
		   struct ss_target *target, const struct ss_process_memory *memory,
		   int maps_fd);

/* Does the same for the wanted modules, unless they are open already. */
bool ss_files_open_modules(struct ss_module_impl *const *modules, const bool *wanted,
			   size_t count, struct ss_target *target,
			   const struct ss_process_memory *memory, int maps_fd);

/* Opens a regular file of a local file system for reading by its path below the root of
   the target (as it was when ss_target_open_root() was called); no link is followed in the
   last component, and none leads out of the root. Returns a descriptor, or -1. */
int ss_files_open_below_root(const struct ss_target *target, const char *path,
			     struct stat *ret_status);

/*
 * The mapping at one address of a process, without reading all of its maps.
 */

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

/*
 * The perf map of a target: /tmp/perf-PID.map, in which a JIT compiler lists its
 * functions (Linux, tools/perf/Documentation/jit-interface.txt). This finds, opens and
 * checks the file; symbolize/ reads it.
 */

/* The perf map of the target, with one reference: a regular file below its root that is
   not a link, belongs to the user of the target or root, and is not older than the
   process. NULL if there is none, or no memory. Not to be called during a freeze. */
struct ss_module_impl *ss_perfmap_of(const struct ss_target *target);

/* Sets capture->perf_map if the capture refers to code outside of files and the target
   has a perf map. Runs after the release. */
void ss_perfmap_open(struct ss_capture *capture, const struct ss_target *target);

#endif
