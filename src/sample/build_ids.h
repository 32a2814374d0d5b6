/*
 * Finds the build-ids that the kernel did not report: it lacks PROCMAP_QUERY (before Linux
 * 6.11), or the id is longer than 20 bytes. They are in the ELF notes of the modules'
 * files, which are untrusted input, so a confined child reads them. One child does so for
 * all modules that were loaded since the last one: processes load modules in batches.
 *
 * This is a part of sample/, the lowest room that may use both a process's modules
 * and a child (sandbox/).
 */
#ifndef SS_SAMPLE_BUILD_IDS_H
#define SS_SAMPLE_BUILD_IDS_H

#include "data/capture.h"
#include "process/target.h"

/* Finds missing build-ids of the modules of a capture. Each module is tried once. If the
   child cannot be created, or fails because of a module, pub.problem of the module says
   so. The child runs as the owner of the target, if that is permitted. Errors: NO_MEMORY. */
struct ss_error *ss_build_ids_find(const struct ss_capture *capture,
				   const struct ss_target *target);

#endif
