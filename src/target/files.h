/*
 * The bytes of modules: their files, opened so that a hostile target cannot lead us
 * elsewhere, and checked against what is mapped; or target memory, where there is no
 * file. Runs after the release.
 */
#ifndef SS_TARGET_FILES_H
#define SS_TARGET_FILES_H

#include <sys/stat.h>

#include "target/memory.h"
#include "target/target.h"
#include "model/capture.h"

/* Fills in build-id, and fd or bytes, of the modules that any copied stack, register
   or frame refers to. What cannot be had is said in pub.problem. maps_fd: the map of the
   memory that was captured, which tells whether the process still has it. */
void ss_files_open(struct ss_capture *capture, const struct ss_target *target,
		   const struct ss_memory *memory, int maps_fd);

/* The same for one module, if it was not opened before. */
void ss_files_open_module(struct ss_module_impl *module, const struct ss_target *target,
			  const struct ss_memory *memory, int maps_fd);

/* Opens a regular file for reading by its path below the target's root (as it was when
   ss_target_hold_root() was called), which no link leads out of. flags: of open(2), such
   as O_NOFOLLOW. A descriptor, or -1. */
int ss_files_open_below_root(const struct ss_target *target, const char *path, int flags,
			     struct stat *st);

#endif
