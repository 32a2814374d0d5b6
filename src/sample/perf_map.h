/*
 * The names of code that a JIT compiler made in a recorded process: its perf map is
 * copied to the recording, and the report looks names up. Nothing is interpreted here.
 */
#ifndef SS_SAMPLE_PERF_MAP_H
#define SS_SAMPLE_PERF_MAP_H

#include "data/snapshot.h"
#include "data/recording_writer.h"
#include "process/target.h"

struct ss_recorder_perf_map {
	struct ss_perf_map_file map; /* file NULL: not found yet */
	bool has_jit_frames;	     /* a recorded frame is in no module */
	uint64_t searched_ns;	     /* CLOCK_MONOTONIC */
};

/* Call this for each frame that is in no module: searches for the map once a second
   until it is found. Do not call it while a thread is stopped. */
void ss_recorder_perf_map_find(struct ss_recorder_perf_map *perf_map,
			       struct ss_target *target, uint64_t now_ns);

/* Writes the map of a process, if it has one. Errors: those of ss_writer_perf_map(). */
struct ss_error *ss_recorder_perf_map_write(struct ss_recorder_perf_map *perf_map,
					    struct ss_target *target,
					    struct ss_writer *writer, uint32_t process);

void ss_recorder_perf_map_deinit(struct ss_recorder_perf_map *perf_map);

#endif
