#include "data/recording_format.h"

#include "data/recording.h"
#include "data/snapshot_fields.h"

static const struct ss_field process_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_recorded_process, pid, INT32_MAX),
	SS_FIELD(2, TEXT, ss_recorded_process, name, 0),
	SS_FIELD(3, TEXT, ss_recorded_process, executable, 0),
	SS_FIELD(4, UNSIGNED, ss_recorded_process, begin_ns, 0),
	SS_FIELD(5, UNSIGNED, ss_recorded_process, start_time, 0),
};
static const struct ss_recorded_process no_process = { .name = "" };

static const struct ss_field thread_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_recorded_thread, process, 0),
	SS_FIELD(2, UNSIGNED, ss_recorded_thread, tid, INT32_MAX),
	SS_FIELD(3, TEXT, ss_recorded_thread, name, 0),
	SS_FIELD(4, UNSIGNED, ss_recorded_thread, begin_ns, 0),
};
static const struct ss_recorded_thread no_thread = { .name = "" };

static const struct ss_field module_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_module_record, process, 0),
	SS_FIELD_NESTED(2, STRUCT, ss_module_record, module, &ss_module_schema, 0),
	SS_FIELD(3, UNSIGNED, ss_module_record, bias, 0),
	SS_FIELD(4, UNSIGNED, ss_module_record, begin_ns, 0),
};
static const struct ss_module_record no_module = { .module.path = "" };

static const struct ss_field probe_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_recorded_probe, module, 0),
	SS_FIELD(2, UNSIGNED, ss_recorded_probe, offset, 0),
	SS_FIELD(3, TEXT, ss_recorded_probe, name, 0),
	SS_FIELD(4, UNSIGNED, ss_recorded_probe, usdt, 1),
	SS_FIELD(5, UNSIGNED, ss_recorded_probe, line, 1),
	SS_FIELD(6, UNSIGNED, ss_recorded_probe, scope, 1),
};
static const struct ss_recorded_probe no_probe = { .name = "", .module = UINT32_MAX };

static const struct ss_field trace_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_trace_summary, hits, 0),
	SS_FIELD(2, UNSIGNED, ss_trace_summary, read, 0),
	SS_FIELD(3, UNSIGNED, ss_trace_summary, lost, 0),
	SS_FIELD(4, UNSIGNED, ss_trace_summary, skipped, 0),
	SS_FIELD(5, UNSIGNED, ss_trace_summary, unpaired, 0),
	SS_FIELD(6, UNSIGNED, ss_trace_summary, ended, 1, .name = "process_ended"),
};

static const struct ss_field coverage_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_recorded_coverage, tick, 0),
	SS_FIELD(2, UNSIGNED, ss_recorded_coverage, process, 0),
	SS_FIELD(3, UNSIGNED, ss_recorded_coverage, kind, SS_TASK_KINDS - 1),
	SS_FIELD_NESTED(4, STRUCT, ss_recorded_coverage, coverage, &ss_coverage_schema,
			0),
};

static const struct ss_field task_fields[] = {
	SS_FIELD(1, UNSIGNED, ss_recorded_task, tick, 0),
	SS_FIELD(2, UNSIGNED, ss_recorded_task, process, 0),
	SS_FIELD(3, UNSIGNED, ss_recorded_task, kind, SS_TASK_KINDS - 1),
	SS_FIELD(9, UNSIGNED, ss_recorded_task, thread, 0),
	SS_FIELD(10, UNSIGNED, ss_recorded_task, stack, 0),
	SS_FIELD_NESTED(20, STRUCT, ss_recorded_task, task, &ss_recorded_task_schema, 0),
};
static const struct ss_recorded_task no_task = { .thread = UINT32_MAX,
						 .task = { .name = "", .state = '?' } };

const struct ss_schema ss_record_schemas[SS_DEFINE_KINDS] = {
	[SS_DEFINE_PROCESS] = SS_SCHEMA(process_fields, ss_recorded_process, &no_process),
	[SS_DEFINE_THREAD] = SS_SCHEMA(thread_fields, ss_recorded_thread, &no_thread),
	[SS_DEFINE_MODULE] = SS_SCHEMA(module_fields, ss_module_record, &no_module),
	[SS_DEFINE_PROBE] = SS_SCHEMA(probe_fields, ss_recorded_probe, &no_probe),
	[SS_DEFINE_TRACE] = SS_SCHEMA(trace_fields, ss_trace_summary, NULL),
	[SS_DEFINE_TASK_COVERAGE] =
		SS_SCHEMA(coverage_fields, ss_recorded_coverage, NULL),
	[SS_DEFINE_TASK] = SS_SCHEMA(task_fields, ss_recorded_task, &no_task),
};
