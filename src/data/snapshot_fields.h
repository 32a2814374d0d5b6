/*
 * The fields of a snapshot, for messages of a confined process and for recordings.
 */
#ifndef SS_DATA_SNAPSHOT_FIELDS_H
#define SS_DATA_SNAPSHOT_FIELDS_H

#include "base/error.h"
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
	/* Before ss_snapshot_diagnose() */
	SS_VECTOR(struct ss_runtime_lock) runtime_locks;
	SS_VECTOR(struct ss_lock_reference) references;
};

/* Which members of a task or process JSON shows where. */
enum ss_show_case {
	SS_SHOW_THREAD = 1 << 0,   /* what identifies a thread, and its state */
	SS_SHOW_CAPTURED = 1 << 1, /* of a thread in a snapshot */
	SS_SHOW_END = 1 << 2,
	SS_SHOW_STACK = 1 << 3,
	SS_SHOW_OBJECT = 1 << 4, /* what identifies a task of asyncio */
	SS_SHOW_DOING = 1 << 5,	 /* what a task of a runtime does */
	SS_SHOW_AWAITED = 1 << 6,
	SS_SHOW_NUMBERED = 1 << 7, /* frames have the index of their module */
	SS_SHOW_PROCESS = 1 << 8,
	SS_SHOW_TIME = 1 << 9,
	SS_SHOW_CAPTURE = 1 << 10, /* how it was captured; */
	SS_SHOW_SINGLE = 1 << 11,  /* more of it, of a snapshot that is not in a series */
};

extern const struct ss_schema ss_application_lock_schema;
extern const struct ss_schema ss_blocker_schema;
extern const struct ss_schema ss_coverage_schema;
extern const struct ss_schema ss_crash_schema;
extern const struct ss_schema ss_deadlock_schema;
extern const struct ss_schema ss_descriptor_schema;
extern const struct ss_schema ss_frame_schema;
extern const struct ss_schema ss_module_schema;
extern const struct ss_schema ss_runtime_info_schema;
extern const struct ss_schema ss_process_schema;
extern const struct ss_schema ss_stack_schema;
extern const struct ss_schema ss_task_schema;
extern const struct ss_schema ss_wait_schema;
/* Of a descriptor in a set that is watched, without what it watches itself. */
extern const struct ss_schema ss_watched_descriptor_schema;
/* The fields that recordings have: stacksnap-recording(5). */
extern const struct ss_schema ss_recorded_task_schema;
extern const struct ss_schema ss_recorded_wait_schema;
extern const struct ss_schema ss_snapshot_schema;

/*
 * A snapshot as bytes, from the confined process that made it to its parent. The bytes are
 * untrusted, and of the same build of the library.
 */

/* Writes a snapshot, with those of related processes, to a file. Errors: SYSTEM, NO_MEMORY,
   INVALID (too large). */
struct ss_error *ss_snapshot_send(const struct ss_snapshot *snapshot, int fd);

/*
 * Reads the next snapshot from bytes at *at, which is moved beyond it. *memory is how much may be
 * allocated for it and those that follow; see ss_snapshot_memory(). It has what the public
 * accessors return; it cannot be symbolized or diagnosed any more. Every index that these return is
 * valid, every text that is never NULL is there, threads of deadlocks wait. Errors: INVALID,
 * NO_MEMORY.
 */
struct ss_error *ss_snapshot_receive(const uint8_t *bytes, size_t size, size_t *at,
				     uint64_t *memory, struct ss_snapshot **ret);

/* The memory that the snapshots in so many bytes may take: at most 4 GiB. */
uint64_t ss_snapshot_memory(size_t size);

#endif
