/*
 * The perf map of a target: /tmp/perf-PID.map, in which a JIT compiler lists its
 * functions (Linux, tools/perf/Documentation/jit-interface.txt). This finds, opens and
 * checks the file; symbolize/ reads it.
 */
#ifndef SS_PROCESS_PERFMAP_H
#define SS_PROCESS_PERFMAP_H

#include "data/capture.h"
#include "process/target.h"

/* The perf map of the target, with one reference: a regular file below its root that is
   not a link, belongs to the user of the target or root, and is not older than the
   process. NULL if there is none, or no memory. Not to be called during a freeze. */
struct ss_module_impl *ss_perfmap_of(const struct ss_target *target);

/* Sets capture->perf_map if the capture refers to code outside of files and the target
   has a perf map. Runs after the release. */
void ss_perfmap_open(struct ss_capture *capture, const struct ss_target *target);

#endif
