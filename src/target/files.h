/*
 * The bytes of modules: their files, opened so that a hostile target cannot lead us
 * elsewhere, and checked against what is mapped; or target memory, where there is no
 * file. Runs after the release.
 */
#ifndef SS_TARGET_FILES_H
#define SS_TARGET_FILES_H

#include "target/memory.h"
#include "target/target.h"
#include "model/capture.h"

/* Fills in build-id, and fd or bytes, of the modules that any copied stack, register
   or frame refers to. What cannot be had is said in pub.problem. */
void ss_files_open(struct ss_capture *capture, const struct ss_target *target,
		   const struct ss_memory *memory);

#endif
