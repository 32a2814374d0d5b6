/*
 * The fields of a snapshot, for messages of a confined process and for recordings.
 */
#ifndef SS_DATA_SNAPSHOT_FIELDS_H
#define SS_DATA_SNAPSHOT_FIELDS_H

#include "data/schema.h"
#include "data/snapshot.h"

/* Tables that fields have indexes of. */
enum ss_snapshot_table {
	SS_TABLE_MODULES = 1,
	SS_TABLE_STACKS,
	SS_TABLE_DESCRIPTORS,
	SS_TABLE_THREADS,
	SS_TABLE_ASYNCIO,
};

/* A thread that a wait leads to: indexes for ss_snapshot_related() and
   ss_snapshot_task(). */
struct ss_thread_number {
	uint32_t process;
	uint32_t thread;
};

/* The chain of a thread, or (without thread) a cycle of several processes. */
struct ss_thread_numbers {
	size_t thread;
	const struct ss_thread_number *numbers;
	size_t count;
};

/* The contents of a struct ss_snapshot, as its encoding has them. */
struct ss_snapshot_fields {
	const char *arch;
	struct ss_process process;
	struct ss_regs crash_regs;
	SS_VECTOR(struct ss_module) modules;
	SS_VECTOR(struct ss_stack) stacks;
	SS_VECTOR(struct ss_descriptor) descriptors;
	SS_VECTOR(struct ss_task) tasks[SS_TASK_KINDS];
	struct ss_task_coverage coverage[SS_TASK_KINDS];
	SS_VECTOR(struct ss_runtime_info) runtimes;
	SS_VECTOR(struct ss_deadlock) deadlocks;
	SS_VECTOR(struct ss_blocker) blockers;
	SS_VECTOR(struct ss_application_lock) application_locks;
	SS_VECTOR(struct ss_thread_numbers) chains;
	SS_VECTOR(struct ss_thread_numbers) cycles;
};

extern const struct ss_schema ss_wait_schema;
/* The fields that recordings have: stacksnap-recording(5). */
extern const struct ss_schema ss_recorded_wait_schema;
extern const struct ss_schema ss_module_schema;
extern const struct ss_schema ss_coverage_schema;
extern const struct ss_schema ss_snapshot_schema;

#endif
