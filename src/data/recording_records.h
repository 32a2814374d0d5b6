/*
 * The fields of definitions in a recording, for its writer and its reader:
 * stacksnap-recording(5). Processes, threads, modules and stacks are numbers of the segment;
 * texts are numbers of its strings.
 */
#ifndef SS_DATA_RECORDING_RECORDS_H
#define SS_DATA_RECORDING_RECORDS_H

#include "data/recording.h"
#include "data/recording_format.h"
#include "data/schema.h"

/* struct ss_recorded_module, with the module. */
struct ss_module_record {
	uint32_t process;
	struct ss_module module;
	uint64_t bias;
	uint64_t begin_ns;
};

/* By enum ss_definition: of struct ss_recorded_process, ss_recorded_thread, ss_module_record,
   ss_recorded_probe, ss_trace_summary, ss_recorded_coverage, ss_recorded_task. Other records
   have no fields. */
extern const struct ss_schema ss_record_schemas[SS_DEFINE_KINDS];

#endif
