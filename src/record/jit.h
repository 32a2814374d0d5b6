/*
 * The names of code that a JIT compiler makes in a recorded process: its perf map goes
 * into the recording as it is, and the report looks names up. Nothing is interpreted here.
 */
#ifndef SS_RECORD_JIT_H
#define SS_RECORD_JIT_H

#include "model/snapshot.h"
#include "record/writer.h"
#include "target/target.h"

struct ss_jit {
	struct ss_perf_map_file map; /* file NULL: none was found yet */
	bool wanted;		     /* a frame was met that lies in no module */
	uint64_t tried_ns;	     /* CLOCK_MONOTONIC */
};

/* After a frame was met that lies in no module: looks for the map, now and then. Not
   while a thread stands still. */
void ss_jit_look(struct ss_jit *jit, struct ss_target *target, uint64_t now_ns);

/* Writes the map of a process, if it has one. Errors: those of ss_writer_perf_map(). */
struct ss_error *ss_jit_write(struct ss_jit *jit, struct ss_target *target,
			      struct ss_writer *writer, uint32_t process);

void ss_jit_deinit(struct ss_jit *jit);

#endif
