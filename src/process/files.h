/*
 * The bytes of modules: their files, opened so that a hostile target cannot redirect us
 * to other files; or target memory if there is no file. Runs after the release, in a child
 * with our privileges that is abandoned if it blocks (process/opener.h): it opens and
 * copies, and parses nothing (see ss_module_identify()). Files of a local disk need no child.
 */
#ifndef SS_PROCESS_FILES_H
#define SS_PROCESS_FILES_H

#include <sys/stat.h>

#include "process/process_memory.h"
#include "process/target.h"
#include "data/capture.h"

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

#endif
