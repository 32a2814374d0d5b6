/*
 * The perf map of a target: the file in which a JIT compiler says where its functions
 * are, /tmp/perf-PID.map (Linux, tools/perf/Documentation/jit-interface.txt). Here it is
 * found, opened and checked; what is in it is for symbolize/ to read.
 */
#ifndef SS_TARGET_PERFMAP_H
#define SS_TARGET_PERFMAP_H

#include "model/capture.h"
#include "target/target.h"

/* The map of the target, to read, with one reference: a regular file below its root, no
   link, by the target's user or root, not written before the process began. NULL: it has
   none, or there is no memory. Not for a freeze. */
struct ss_module_impl *ss_perfmap_of(const struct ss_target *target);

/* Sets capture->perf_map if the capture refers to code that lies in no file, and the
   target has a map. Runs after the release. */
void ss_perfmap_open(struct ss_capture *capture, const struct ss_target *target);

#endif
